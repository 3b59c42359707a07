"""Every table of the warehouse: its columns, its keys, how its files are partitioned and sorted.

Times are ms UTC of the Redis clock; intervals are half-open, `[from_ms, to_ms)`. An id is an entry's place in its
stream, `ms` and `n`; `seq` orders the entries of an incarnation, mqpipeline/clean.py the incarnations of a namespace.
The tables of reports follow from mqpipeline/reports/catalogue.py.
"""

import zlib
from functools import cache
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

ID = "struct<ms: bigint, n: int>"
DRAIN = "struct<owner: string, reason: string, until_ms: bigint>"
ROWS = "array<struct<broker: string, before: string, after: string, topics: array<string>>>"
ROUTE_BUCKETS = 64


def route_bucket(topic: bytes) -> int:
    """The folder of a topic's route versions, as SQL makes it of the topic's UTF-8 (ROUTE_VERSIONS)."""
    return zlib.crc32(topic) % ROUTE_BUCKETS


class Partition(NamedTuple):
    """A folder of files: the column's name, its type, and the SQL that makes it of the table's columns."""

    name: str
    type: str
    sql: str


class Table(NamedTuple):
    """`columns` is DDL, `keys` identify a row, `sort` is the order within a file. Of `indexed` columns, those of `sort`
    by default, the log says the least and the greatest value of each file."""

    name: str
    columns: str
    keys: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()
    sort: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()

    @property
    def schema(self) -> StructType:
        """Its columns as Spark wants them."""
        return _schema(self.columns)

    @property
    def bounded(self) -> tuple[str, ...]:
        """The columns that the log has bounds of. Those of partitions are in no file."""
        folders = {partition.name for partition in self.partitions}
        return tuple(name for name in self.indexed or self.sort if name not in folders)

    @property
    def stored_schema(self) -> StructType:
        """The same with the columns of its partitions, as it is read."""
        added = (
            f"{partition.name} {partition.type}"
            for partition in self.partitions
            if partition.sql != partition.name
        )
        return _schema(", ".join((self.columns, *added)))


@cache
def _schema(columns: str) -> StructType:
    return cast(StructType, StructType.fromDDL(columns))  # Java parses it


def _day(column: str) -> Partition:
    return Partition("day", "string", f"date_format(timestamp_millis({column}), 'yyyy-MM-dd')")


def by_month(column: str) -> Partition:
    """Return the folder by month of a time; `open` without one."""
    return Partition(
        "month", "string", f"coalesce(date_format(timestamp_millis({column}), 'yyyy-MM'), 'open')"
    )


def months(times: pa.Array) -> pa.Array:
    """Return the folders of `by_month`, of times as Arrow has them."""
    begun = times.fill_null(0).to_numpy().astype("datetime64[ms]").astype("datetime64[M]")
    distinct, which = np.unique(begun, return_inverse=True)
    named = pa.array(np.datetime_as_string(distinct).tolist(), pa.utf8()).take(pa.array(which))
    return pc.if_else(times.is_null(), "open", named)


EVENTS = Table(
    "events",
    f"""namespace string, inc bigint, seq bigint, id_ms bigint, id_n int, v int, kind string, cause string, op string,
    actor string, peer string, part_i int, part_n int, cluster string, broker string, broker_id bigint, addr string,
    epoch bigint, effective_ms bigint, last_seen_ms bigint, lease_ms bigint, closed_ms bigint, since_ms bigint,
    topics int, drained boolean, rows {ROWS}, fields map<string, string>, batch bigint,
    rejected string""",
    keys=("namespace", "inc", "seq", "id_ms", "id_n"),
    partitions=(_day("id_ms"),),
    sort=("namespace", "inc", "seq"),
    indexed=("namespace", "inc", "seq", "id_ms", "id_n", "batch"),
)
"""The landing: every entry that was read, repeats included; `batch` grows with each read. `fields` are those of the
entry that no column holds. `rejected` is null, or what of the entry cannot be read as it should be (`text`, `version`,
`missing`, `number`, `rows`): that column is null, `fields` has it as it was; what is not UTF-8 (`text`) as base64."""

GAPS = Table(
    "gaps",
    "namespace string, inc bigint, type string, from_seq bigint, to_seq bigint, from_ms bigint, to_ms bigint",
    keys=("namespace", "inc", "type", "from_seq"),
)
"""What is missing in the stream: `hole` (seqs that were never read), `rollback` (seqs of a lost primary),
`incarnation` (a stream that began again). `from_ms` is the last entry before, `to_ms` the first after."""

BROKER_SESSIONS = Table(
    "broker_sessions",
    f"""namespace string, inc bigint, cluster string, broker string, broker_id bigint, start_id {ID}, addr string,
    epoch bigint, start_ms bigint, start_cause string, end_ms bigint, end_id {ID}, recorded_ms bigint,
    end_cause string, last_seen_ms bigint, closed_ms bigint, drained boolean, left_censored boolean, open boolean""",
    keys=("namespace", "inc", "cluster", "broker", "broker_id", "start_id"),
    partitions=(by_month("end_ms"),),
    sort=("namespace", "cluster", "broker", "broker_id", "start_ms"),
)
"""One stay of a member in its slot (cluster, broker, id); `end_ms` is null while it is open."""

BROKER_VERSIONS = Table(
    "broker_versions",
    f"""namespace string, inc bigint, broker string, from_id {ID}, cluster string, epoch bigint, zone string,
    acting boolean, drain {DRAIN}, from_ms bigint, to_ms bigint""",
    keys=("namespace", "inc", "broker", "from_id"),
    partitions=(by_month("to_ms"),),
    sort=("namespace", "broker", "from_ms"),
)
"""What held of a broker name from one change of it to the next."""

ROUTE_VERSIONS = Table(
    "route_versions",
    f"""namespace string, inc bigint, topic string, broker string, from_id {ID}, epoch bigint, read_queues int,
    write_queues int, perm int, sys_flag int, from_ms bigint, from_cause string, from_actor string, from_op string,
    to_ms bigint, to_id {ID}, to_cause string, to_actor string""",
    keys=("namespace", "inc", "topic", "broker", "from_id"),
    partitions=(
        Partition("bucket", "int", f"cast(pmod(crc32(cast(topic as binary)), {ROUTE_BUCKETS}) as int)"),
        by_month("to_ms"),
    ),
    sort=("topic", "from_ms"),
)
"""One stored queue datum of a topic on a broker's epoch; visible while a session of that epoch runs."""

HEARTBEATS = Table(
    "heartbeats",
    """namespace string, id_ms bigint, id_n int, cluster string, broker string, broker_id bigint, addr string,
    code int""",
    keys=("namespace", "id_ms", "id_n"),
    partitions=(_day("id_ms"),),
    sort=("namespace", "id_ms", "id_n"),
    indexed=("namespace", "id_ms", "id_n"),
)
"""Each accepted heartbeat, where the name server writes them (option `events.heartbeats`)."""

RUNS = Table(
    "runs",
    """run bigint, as_of_ms bigint, as_of map<string, bigint>, final_ms bigint, finished_ms bigint,
    folded map<string, struct<inc: bigint, seq: bigint, batch: bigint, recorded: boolean>>,
    versions map<string, bigint>, rows map<string, bigint>, files map<string, bigint>""",
    keys=("run",),
    indexed=("run",),
)
"""A row a run: until when its reports go, until when each namespace is known, up to when windows are closed, how far it
has read each namespace's events, and which version of each derived table is its, with how many rows in which `files`
(a hash of their paths)."""

HEALTH = Table(
    "report_health",
    """namespace string, as_of bigint, entries bigint, rejected bigint, repeats bigint, phantoms bigint, unknown bigint,
    incomplete bigint, waiting bigint, missing bigint, incarnations bigint, round string, round_ms bigint,
    proves boolean, members bigint, members_differing bigint, pairs bigint, pairs_differing bigint""",
    keys=("namespace",),
    sort=("namespace",),
)
"""What a run saw of a namespace's stream, in all of history. `entries` have landed, `rejected` of them. Up to the last
one that the tables know: `repeats`, which were there already, `phantoms` of a lost primary, those of `unknown` kinds or
versions, those of `incomplete` groups; `waiting` are behind it. `missing` were never read; the stream began again
`incarnations` times. The other columns are of the newest checkpoint round that one run has read whole, which ended at
`round_ms`: how many members and pairs of a topic and a broker it lists, how many differ from the tables, and whether
history was whole before it (`proves`): then a difference is a defect."""

TABLES = (EVENTS, GAPS, BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS, HEARTBEATS, HEALTH)
"""All but those of reports."""
