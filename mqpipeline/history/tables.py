"""The tables that history is read from, and reading no more of them than a question needs."""

import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from math import inf
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import Dataset

from mqpipeline.lake.log import LakeError
from mqpipeline.schemas import route_bucket
from mqpipeline.texts import one_line

BUCKET: Final = "bucket"
MONTH: Final = "month"
FOREVER: Final = 2**63 - 1
"""Later than every time."""
Expression = Any  # of pyarrow.compute, which has no types


class Id(msgspec.Struct, frozen=True, order=True):
    """An entry's place in its stream."""

    ms: int
    n: int


class Drain(msgspec.Struct, frozen=True):
    """That a broker name is to be written to no more, until a time or for good."""

    owner: str | None
    reason: str | None
    until_ms: int | None


class GroupKey(NamedTuple):
    """What queue data belong to: a broker name from its first registration until it is empty."""

    inc: int
    broker: str
    epoch: int


class Session(msgspec.Struct, frozen=True):
    """Columns of BROKER_SESSIONS."""

    inc: int
    broker: str
    epoch: int
    cluster: str
    broker_id: int
    addr: str
    start_id: Id
    start_ms: int
    start_cause: str | None
    end_ms: int | None
    end_id: Id | None
    recorded_ms: int | None
    end_cause: str | None

    @property
    def group(self) -> GroupKey:
        return GroupKey(self.inc, self.broker, self.epoch)

    @property
    def until_ms(self) -> int:
        """Its end, FOREVER while it is open."""
        return FOREVER if self.end_ms is None else self.end_ms


class Version(msgspec.Struct, frozen=True):
    """What held of a broker name, or of a topic on it, from one change to the next."""

    inc: int
    broker: str
    from_id: Id
    from_ms: int
    to_ms: int | None

    @property
    def until_ms(self) -> int:
        """Its end, FOREVER while it holds."""
        return FOREVER if self.to_ms is None else self.to_ms


class NameVersion(Version, frozen=True):
    """Columns of BROKER_VERSIONS."""

    cluster: str | None
    zone: str | None
    acting: bool | None
    drain: Drain | None


class RouteVersion(Version, frozen=True):
    """Columns of ROUTE_VERSIONS: queue data as they were stored."""

    topic: str
    epoch: int
    read_queues: int
    write_queues: int
    perm: int
    sys_flag: int
    from_cause: str | None
    from_actor: str | None
    from_op: str | None
    to_id: Id | None
    to_cause: str | None
    to_actor: str | None

    @property
    def group(self) -> GroupKey:
        return GroupKey(self.inc, self.broker, self.epoch)

    @property
    def queues(self) -> str:
        """As the store has them: `readQ,writeQ,perm,sysFlag`."""
        return f"{self.read_queues},{self.write_queues},{self.perm},{self.sys_flag}"


Row = TypeVar("Row", bound=msgspec.Struct)


class Tables(NamedTuple):
    """BROKER_SESSIONS, BROKER_VERSIONS and ROUTE_VERSIONS (mqpipeline/schemas.py) of one name server, None where a
    table has never been written. Reading them raises TimeoutError from `until_s` of the monotonic clock on.

    With their partition columns, `bucket` and `month`, only the files that matter are read; without them all are."""

    namespace: str
    sessions: Dataset | None
    names: Dataset | None
    routes: Dataset | None
    until_s: float = inf

    def sessions_during(
        self, from_ms: int, to_ms: int, brokers: Collection[str] | None = None, *, as_recorded: bool = False
    ) -> list[Session]:
        """Return those of some instant of [from_ms, to_ms], of these broker names or of all. `as_recorded`: a member
        that fell silent stays until that was written, not only until its lease ended."""
        end = pc.coalesce(pc.field("recorded_ms"), pc.field("end_ms")) if as_recorded else pc.field("end_ms")
        where = _overlaps(pc.field("start_ms"), end, from_ms, to_ms) & _of(brokers)
        if not as_recorded:  # their month is that of `end_ms`
            where &= _not_ended(self.sessions, from_ms)
        sessions = self._rows(self.sessions, where, Session)
        if not as_recorded:
            return [*sessions]
        return [
            msgspec.structs.replace(row, end_ms=row.end_ms if row.recorded_ms is None else row.recorded_ms)
            for row in sessions
        ]

    def names_during(
        self, from_ms: int, to_ms: int, brokers: Collection[str] | None = None
    ) -> list[NameVersion]:
        """Return what held at some instant of [from_ms, to_ms], of these broker names or of all."""
        where = _held(self.names, from_ms, to_ms) & _of(brokers)
        return [*self._rows(self.names, where, NameVersion)]

    def routes_during(
        self,
        from_ms: int,
        to_ms: int,
        topics: Collection[str] | None = None,
        brokers: Collection[str] | None = None,
    ) -> Iterator[RouteVersion]:
        """Yield those stored at some instant of [from_ms, to_ms], of these topics and broker names or of all."""
        where = _held(self.routes, from_ms, to_ms) & _of(brokers)
        if topics is not None:
            where &= one_of("topic", topics) & _in_buckets(self.routes, topics)
        return self._rows(self.routes, where, RouteVersion)

    def topics_of(self, from_ms: int, to_ms: int, where: Expression) -> set[str]:
        """Return the topics of route versions that are stored at some instant of [from_ms, to_ms], and fulfil this."""
        topics: set[str] = set()
        for batch in self._batches(self.routes, _held(self.routes, from_ms, to_ms) & where, ["topic"]):
            topics.update(batch["topic"].unique().to_pylist())
        return topics

    def first_ms(self) -> int | None:
        """Return when the tables begin, None without a row. Members that were there before it are known, but not their
        topics."""
        began = ~pc.coalesce(pc.field("left_censored"), pc.scalar(False))
        columns = ((self.sessions, began, "start_ms"), (self.names, pc.scalar(True), "from_ms"))
        times = (
            pc.min(batch[name]).as_py()
            for dataset, where, name in columns
            for batch in self._batches(dataset, where, [name])
        )
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def _rows(self, dataset: Dataset | None, where: Expression, row: type[Row]) -> Iterator[Row]:
        for batch in self._batches(dataset, where, [*row.__struct_fields__]):
            yield from msgspec.convert(batch.to_pylist(), list[row])  # type: ignore[valid-type]

    def _batches(
        self, dataset: Dataset | None, where: Expression, columns: list[str]
    ) -> Iterator[pa.RecordBatch]:
        if dataset is None:
            return
        of_namespace = (pc.field("namespace") == self.namespace) & where
        batches = iter(dataset.to_batches(columns=columns, filter=of_namespace))
        while (batch := _read(batches)) is not None:
            if time.monotonic() >= self.until_s:
                raise TimeoutError("the question takes too long: ask about less time, or about one topic")
            yield batch


def _read(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    try:
        return next(batches, None)
    except (pa.ArrowException, OSError) as error:
        raise LakeError(
            f"a file of the tables cannot be read: {one_line(error)}. Run `mqpipeline check`"
        ) from None


def bucket_of(topic: str) -> int:
    """Return the folder of a topic's route versions."""
    return route_bucket(topic.encode())


def within(column: str, from_ms: int, to_ms: int) -> Expression:
    """Return whether a time was after `from_ms`, and at `to_ms` at the latest."""
    return (pc.field(column) > from_ms) & (pc.field(column) <= to_ms)


def one_of(column: str, texts: Collection[str]) -> Expression:
    """Return whether a column of text is one of these, of which there may be none."""
    return pc.field(column).isin(pa.array([*texts], pa.string()))


def _held(dataset: Dataset | None, from_ms: int, to_ms: int) -> Expression:
    """Return the filter for rows of a table with `from_ms` and `to_ms` that reach into a time."""
    overlaps = _overlaps(pc.field("from_ms"), pc.field("to_ms"), from_ms, to_ms)
    return overlaps & _not_ended(dataset, from_ms)


def _overlaps(start: Expression, end: Expression, from_ms: int, to_ms: int) -> Expression:
    return (start <= to_ms) & (end.is_null() | (end > from_ms))


def _not_ended(dataset: Dataset | None, at_ms: int) -> Expression:
    """Without the folders of what had ended before that instant's month; `open` sorts after every month."""
    if dataset is None or MONTH not in dataset.schema.names:
        return pc.scalar(True)
    return pc.field(MONTH) >= datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m")


def _in_buckets(dataset: Dataset | None, topics: Collection[str]) -> Expression:
    if dataset is None or BUCKET not in dataset.schema.names:
        return pc.scalar(True)
    return pc.field(BUCKET).isin(pa.array(sorted({*map(bucket_of, topics)}), pa.int32()))


def _of(brokers: Collection[str] | None) -> Expression:
    return pc.scalar(True) if brokers is None else one_of("broker", brokers)
