"""Every table of the warehouse: its columns, its keys, how its files are partitioned and sorted.

Times are ms UTC of the Redis clock; intervals are half-open, `[from_ms, to_ms)`. An id is an entry's place in its
stream, `ms` and `n`; (`inc`, `seq`) orders the entries of a namespace.
"""

import zlib
from functools import cache
from typing import NamedTuple, cast

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
    """`columns` is DDL, `keys` tell two rows apart, `sort` is the order within a file."""

    name: str
    columns: str
    keys: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()
    sort: tuple[str, ...] = ()

    @property
    def schema(self) -> StructType:
        """Its columns as Spark wants them."""
        return _schema(self.columns)

    @property
    def stored_schema(self) -> StructType:
        """The same with the columns of its partitions, as it is read."""
        added = (f"{one.name} {one.type}" for one in self.partitions if one.sql != one.name)
        return _schema(", ".join((self.columns, *added)))


@cache
def _schema(columns: str) -> StructType:
    return cast(StructType, StructType.fromDDL(columns))  # Java parses it


def _day(column: str) -> Partition:
    return Partition("day", "string", f"date_format(timestamp_millis({column}), 'yyyy-MM-dd')")


def _month(column: str) -> Partition:
    return Partition(
        "month", "string", f"coalesce(date_format(timestamp_millis({column}), 'yyyy-MM'), 'open')"
    )


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
)
"""The landing: every entry that was read, repeats included; `batch` grows with each read. `fields` are those of the
entry that no column holds. `rejected` is null, or what of the entry cannot be read as it should be (`version`,
`missing`, `number`, `rows`): that column is null, `fields` has it as it was."""

GAPS = Table(
    "gaps",
    "namespace string, inc bigint, type string, from_seq bigint, to_seq bigint, from_ms bigint, to_ms bigint",
    keys=("namespace", "inc", "type", "from_seq"),
)
"""What the stream does not tell: `hole` (seqs that were never read), `rollback` (seqs of a lost primary),
`incarnation` (a stream that began anew). `from_ms` is the last entry before, `to_ms` the first after."""

BROKER_SESSIONS = Table(
    "broker_sessions",
    f"""namespace string, inc bigint, cluster string, broker string, broker_id bigint, start_id {ID}, addr string,
    epoch bigint, start_ms bigint, start_cause string, end_ms bigint, end_id {ID}, recorded_ms bigint,
    end_cause string, last_seen_ms bigint, closed_ms bigint, drained boolean, left_censored boolean, open boolean""",
    keys=("namespace", "inc", "cluster", "broker", "broker_id", "start_id"),
    partitions=(_month("end_ms"),),
    sort=("namespace", "cluster", "broker", "broker_id", "start_ms"),
)
"""One stay of a member in its slot (cluster, broker, id); `end_ms` is null while it is open."""

BROKER_VERSIONS = Table(
    "broker_versions",
    f"""namespace string, inc bigint, broker string, from_id {ID}, cluster string, epoch bigint, zone string,
    acting boolean, drain {DRAIN}, from_ms bigint, to_ms bigint""",
    keys=("namespace", "inc", "broker", "from_id"),
    partitions=(_month("to_ms"),),
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
        _month("to_ms"),
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
)
"""Each accepted beat, where the name server writes them (option `events.heartbeats`)."""

INCIDENTS = Table(
    "incidents",
    f"""namespace string, type string, start_ms bigint, key string, end_ms bigint, members int, share double,
    clusters array<string>, causes map<string, int>, restored_ms bigint, ids array<{ID}>""",
    keys=("namespace", "type", "start_ms", "key"),
    partitions=(_month("start_ms"),),
)
"""Of type `mass_expiry`: many members gone at once; `restored_ms` when 90 % of them were back. The slots or ids that
make up another type are its `key`."""

REPORT = "namespace string, window string, from_ms bigint, to_ms bigint, unit string"
"""What each row of a report begins with. `window` is `1h`, `24h`, `7d`, `30d` (rolling: they end at `as_of`), `day`,
`month` (calendar) or `now`; `unit` is `cluster:<c>`, `broker:<c>:<b>`, `slot:<c>:<b>:<id>` or `topic:<t>`."""
REPORT_END = "as_of bigint, provisional boolean"


def _report(name: str, values: str) -> Table:
    return Table(
        f"report_{name}",
        f"{REPORT}, {values}, {REPORT_END}",
        keys=("namespace", "window", "from_ms", "unit"),
        partitions=(Partition("window", "string", "window"),),
        sort=("namespace", "unit", "from_ms"),
    )


REPORT_AVAILABILITY = _report(
    "availability",
    """up_ms bigint, down_ms bigint, planned_ms bigint, unknown_ms bigint, availability double, weighted double,
    outages bigint, mtbf_ms double, mttr_ms double, worst map<string, double>""",
)
"""Clusters, brokers, topics. `weighted` is of topics, by write queues; `worst` of brokers: the least availability of
any window of that length (`5m`, `1h`, `6h`) within this one."""

REPORT_REPAIR = _report(
    "repair", "outages bigint, n_open bigint, p50_ms double, p90_ms double, p95_ms double"
)
"""Kaplan-Meier over the outages begun in the window, of each cluster and broker."""

REPORT_DETECT = _report(
    "detect",
    """n bigint, p50_ms double, p95_ms double, p99_ms double, max_ms double, lower_p50_ms double,
    without_last_seen bigint, censored bigint, record_delay_p95_ms double, record_delay_max_ms double""",
)
"""From the last sign of life to leaving the routes, of each cluster."""

REPORT_SLO = _report(
    "slo",
    """slo double, budget_ms double, spent_ms double, remaining double, burn map<string, double>,
    alerts array<string>""",
)
"""Of each cluster: the error budget; burn rates over `5m`, `30m`, `1h`, `6h`, `3d` at `as_of`, and which pairs of
them fire (`14.4`, `6`, `1`)."""

REPORT_FLAP = _report("flap", "score double, flapping boolean, flapping_since_ms bigint, episodes bigint")
"""Of each slot, at the window's end; `episodes` began within it."""

REPORT_CHURN = _report("churn", "cluster string, cause string, acts bigint, pairs bigint")
"""Unit `<cluster>:<cause>`, and in window `hour` the same by the hour."""

REPORT_CHURN_TOPICS = _report("churn_topics", "changes bigint")
"""Of each topic: changes that name it or a broker holding it."""

REPORT_SKEW = _report(
    "skew",
    """queues_max_to_mean double, queues_gini double, topics_max_to_mean double, topics_gini double,
    brokers bigint""",
)
"""Of each cluster over its brokers, of each topic over its own, at the window's end."""

REPORT_CONFLICTS = _report("conflicts", "type string, count bigint, last_ms bigint, detail string")
"""Unit `slot:<c>:<b>:<id>:<type>`: claims that were judged, and slots that two addresses take from each other."""

REPORT_TIMEOUTS = _report(
    "timeouts",
    """gaps bigint, p50_ms double, p95_ms double, p99_ms double, p999_ms double, max_ms double, missed bigint,
    suggested_timeout_ms double""",
)
"""Of each cluster and broker whose beats are collected."""

TABLES = (EVENTS, GAPS, BROKER_SESSIONS, BROKER_VERSIONS, ROUTE_VERSIONS, HEARTBEATS, INCIDENTS)
REPORTS = (
    REPORT_AVAILABILITY,
    REPORT_REPAIR,
    REPORT_DETECT,
    REPORT_SLO,
    REPORT_FLAP,
    REPORT_CHURN,
    REPORT_CHURN_TOPICS,
    REPORT_SKEW,
    REPORT_CONFLICTS,
    REPORT_TIMEOUTS,
)
