"""A made-up history of any size, entry by entry as a name server writes it (docs/pipeline.md).

Every broker name has a master; every other one has a slave too, so that its epoch outlives a restart of the master.
Each member is gone once a week: mostly for an upgrade, sometimes killed, lost with its host, or moved to another
address. Once a quarter some brokers expire within seconds of each other. Topics come, grow and go; now and then
an operator takes a broker's write permission away for a while.

What happens when in a week keeps one operation out of the middle of another: masters are gone in [0.05, 0.20) of it and
back by 0.30, slaves half a third later, masses expire at 0.50, permissions go at 0.60 and return at 0.61, topics
change in [0.70, 1.00).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import msgspec

WEEK_MS = 7 * 86_400_000
TIMEOUT_MS = 120_000
SLICE = 500  # pairs in an entry
QUARTER_WEEKS = 13
FEW, MANY = "8,8,6,0", "16,16,6,0"
WIPED = {FEW: "8,8,4,0", MANY: "16,16,4,0"}
CAUSES = ((0.85, "unregistered"), (0.92, "lost"), (0.97, "expired"), (1.0, "replaced"))
"""Why a member is gone, by a lot below that number."""
AWAY_MS = {
    "unregistered": (30_000, 150_000),
    "lost": (60_000, 1_140_000),
    "expired": (300_000, 3_300_000),
    "replaced": (0, 0),
}
"""For how long: the least, and how much more it may be."""


class Scale(NamedTuple):
    """How much there is of everything. Equal scales make equal histories."""

    brokers: int = 1_000
    topics: int = 100_000
    brokers_of_topic: int = 30
    weeks: int = 52
    clusters: int = 10
    namespace: str = "scale"
    start_ms: int = 1_767_225_600_000  # 2026-01-01
    seed: int = 1

    @property
    def stream(self) -> str:
        """The key that such a history would have in Redis."""
        return f"ns:{{{self.namespace}}}:events"


class Entry(NamedTuple):
    """An entry of the stream: its id and its fields."""

    id_ms: int
    id_n: int
    fields: dict[str, str]


class _Write(NamedTuple):
    """An entry without its number. Those of equal `operation` and a `part` from 0 on are one group."""

    at_ms: int
    operation: str
    part: int
    fields: dict[str, str]


def entries(scale: Scale) -> Iterator[Entry]:
    """Yield the history in its order; one week of it is in memory."""
    seq = 0
    for writes in _by_week(scale):
        writes.sort(key=lambda write: (write.at_ms, write.operation, abs(write.part)))
        sizes = Counter(write.operation for write in writes if write.part >= 0)
        places: Counter[str] = Counter()
        before_ms, n = -1, 0
        for at_ms, operation, part, fields in writes:
            seq += 1
            before_ms, n = at_ms, n + 1 if at_ms == before_ms else 0
            number = {"v": "1", "inc": str(scale.start_ms), "seq": str(seq)}
            if part >= 0 and sizes[operation] > 1:
                places[operation] += 1
                number["part"] = f"{places[operation]}/{sizes[operation]}"
            yield Entry(at_ms, n, {**number, "op": operation, **fields})


def _by_week(scale: Scale) -> Iterator[list[_Write]]:
    estate = _Estate(scale)
    for week in range(scale.weeks):
        yield [*(estate.begin() if week == 0 else ()), *estate.week(week)]


@dataclass(slots=True)
class _Member:
    """A slot: `moves` is how often its address has changed, `since_ms` when its member has come."""

    b: int
    id: int
    broker: str
    cluster: str
    has_slave: bool
    epoch: int
    moves: int = 0
    since_ms: int = 0

    @property
    def address(self) -> str:
        return f"10.{self.b // 250}.{self.b % 250}.{1 + 100 * self.id + self.moves % 100}:10911"

    @property
    def actor(self) -> str:
        return f"wire:{self.address}"

    @property
    def named(self) -> dict[str, str]:
        return {"cluster": self.cluster, "broker": self.broker}


class _Pair(NamedTuple):
    """A topic on a broker, from when to when; `slice` is its place in the broker's table, in entries."""

    topic: str
    slice: int
    made_ms: int
    grown_ms: int | None
    ended_ms: int | None

    def data_at(self, at_ms: int) -> str:
        """Return its queue data at a time, "" if it is not there."""
        if at_ms < self.made_ms or (self.ended_ms is not None and at_ms >= self.ended_ms):
            return ""
        return MANY if self.grown_ms is not None and self.grown_ms <= at_ms else FEW


class _Change(NamedTuple):
    at_ms: int
    b: int
    topic: str
    before: str
    after: str


class _Estate:
    """The brokers as they are at some time, and their topics at any."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._random = Random(f"{scale.seed} brokers")
        self._members = [
            _Member(b, id, f"broker-{b:04}", f"cluster-{b % scale.clusters:02}", b % 2 == 1, b + 1)
            for b in range(scale.brokers)
            for id in ((0, 1) if b % 2 else (0,))
        ]
        self._masters = {member.b: member for member in self._members if not member.id}
        self._tables, self._changes = _topics(scale)

    def begin(self) -> Iterator[_Write]:
        """The stream begins, and all members come."""
        start_ms = self._scale.start_ms
        started = {"kind": "stream_started", "cause": "empty_store", "actor": "job:scale"}
        yield _Write(start_ms, "start", 0, started)
        for member in self._members:
            yield from self._comes(member, start_ms + 10 * (1 + 2 * member.b + member.id), is_first=True)

    def week(self, week: int) -> Iterator[_Write]:
        """What happens in it."""
        for member in self._members:
            yield from self._weekly(member, week)
        for master in self._masters.values():
            if self._random.random() < 0.01:
                yield from self._wipe(master, "wipe", self._at(week + 0.6))
                yield from self._wipe(master, "restore", self._at(week + 0.61))
        for change in self._changes[week]:
            yield self._change(change)

    def _at(self, weeks: float) -> int:
        return int(self._scale.start_ms + weeks * WEEK_MS)

    def _weekly(self, member: _Member, week: int) -> Iterator[_Write]:
        lot, when = self._random.random(), self._random.random()
        cause = next(cause for below, cause in CAUSES if lot < below)
        yield from self._gone(member, cause, self._at(week + (0.3 if member.id else 0.05) + 0.15 * when))
        in_mass = not member.has_slave and member.b % 20 == 4
        if in_mass and week % QUARTER_WEEKS == QUARTER_WEEKS - 1:
            yield from self._gone(member, "expired", self._at(week + 0.5) + int(5000 * when))

    def _gone(self, member: _Member, cause: str, gone_ms: int) -> Iterator[_Write]:
        """A member is gone at that time, and comes back. A replacement is one group."""
        late, length = self._random.random(), self._random.random()
        down_ms = gone_ms + (int(1000 * late) if cause == "expired" else 0)
        least, more = AWAY_MS[cause]
        at_ms = down_ms + int(least + more * length)
        seen_ms = gone_ms - (TIMEOUT_MS if cause == "expired" else 200 + int(29_000 * late))
        times = {"since_ms": member.since_ms, "last_seen_ms": seen_ms, "lease_ms": seen_ms + TIMEOUT_MS}
        if cause == "expired":
            times["effective_ms"] = gone_ms
        if cause == "lost":
            times["closed_ms"] = gone_ms - 200
        removed = {
            "kind": "broker_removed",
            "cause": cause,
            "actor": "job:expire" if cause == "expired" else member.actor,
            **_of(member),
            **{name: str(time) for name, time in times.items()},
            "topics": "0",
            "drained": "0",
        }
        left = f"d{member.b}-{member.id}-{down_ms}"
        yield _Write(down_ms, _coming(member, at_ms) if cause == "replaced" else left, 0, removed)
        if cause == "replaced":
            member.moves += 1
            yield from self._comes(member, at_ms, cause="takeover")
        else:
            member.epoch += 0 if member.has_slave else self._scale.brokers
            yield from self._comes(member, at_ms, is_first=not member.has_slave)

    def _comes(
        self, member: _Member, at_ms: int, *, cause: str = "", is_first: bool = False
    ) -> Iterator[_Write]:
        """`is_first`: of its broker, if it is a master; it has to report its topics then."""
        is_first = is_first and not member.id
        member.since_ms = at_ms
        registered = {
            "kind": "broker_registered",
            "cause": cause or ("first" if is_first else "join"),
            "actor": member.actor,
            **_of(member),
            "timeout_ms": str(TIMEOUT_MS),
            "acting": "0",
            "dv": f"0:{at_ms}:1",
            "topics": "0",
        }
        yield _Write(at_ms, _coming(member, at_ms), 1, registered)
        if is_first:
            held = [(pair, "", pair.data_at(at_ms)) for pair in self._tables[member.b]]
            for slice, rows in _in_entries(member.broker, held):
                changed = {"cause": "register", "actor": member.actor, **rows}
                yield _Write(at_ms, _coming(member, at_ms), 2 + slice, _table(member, changed))

    def _wipe(self, master: _Member, cause: str, at_ms: int) -> Iterator[_Write]:
        """An operator takes the write permission away (205), or gives it back (327)."""
        data = ((pair, pair.data_at(at_ms)) for pair in self._tables[master.b])
        both = [(pair, value, WIPED[value]) for pair, value in data if value]
        held = both if cause == "wipe" else [(pair, after, before) for pair, before, after in both]
        for slice, rows in _in_entries(master.broker, held):
            changed = {"cause": cause, "actor": "token:alice", "peer": "192.0.2.10:50112", **rows}
            yield _Write(at_ms, f"w{master.b}-{at_ms}", -1 - slice, _table(master, changed))

    def _change(self, change: _Change) -> _Write:
        """Each change of a topic on a broker is an entry of its own: its operator's tool goes from one to the next."""
        master = self._masters[change.b]
        rows = _rows([[master.broker, change.before, change.after, [change.topic]]])
        fields = {"cause": "register", "actor": master.actor, **rows, "topic": change.topic}
        return _Write(change.at_ms, f"t{change.b}-{change.topic}-{change.at_ms}", 0, _table(master, fields))


def _topics(scale: Scale) -> tuple[dict[int, list[_Pair]], dict[int, list[_Change]]]:
    """Return the table of each broker, and what changes in each week.

    A fifth of the topics comes later than the brokers, a tenth goes, a tenth gets more queues."""
    random, count = Random(f"{scale.seed} topics"), min(scale.brokers_of_topic, scale.brokers)
    tables: defaultdict[int, list[_Pair]] = defaultdict(list)
    changes: defaultdict[int, list[_Change]] = defaultdict(list)

    def week(share: float) -> int | None:
        """One for so many topics, None for the others."""
        lot = random.random()
        return int(lot / share * scale.weeks) if lot < share else None

    for number in range(scale.topics):
        topic, first = f"topic-{number:06}-of-some-service", random.randrange(scale.brokers)
        made, grown, ended = week(0.2), week(0.1), week(0.1)
        if grown is not None and grown <= (-1 if made is None else made):
            grown = None
        if ended is not None and ended <= max(-1 if one is None else one for one in (made, grown)):
            ended = None
        for n in range(count):
            b = (first + n * max(scale.brokers // scale.brokers_of_topic, 1)) % scale.brokers
            at = 0.7 + 0.3 * random.random()
            made_ms, grown_ms, ended_ms = (
                None if one is None else int(scale.start_ms + (one + at) * WEEK_MS)
                for one in (made, grown, ended)
            )
            pair = _Pair(topic, len(tables[b]) // SLICE, made_ms or 0, grown_ms, ended_ms)
            tables[b].append(pair)
            for of, at_ms in ((made, made_ms), (grown, grown_ms), (ended, ended_ms)):
                if of is not None and at_ms is not None:
                    before, after = pair.data_at(at_ms - 1), pair.data_at(at_ms)
                    changes[of].append(_Change(at_ms, b, topic, before, after))
    return tables, changes


def _coming(member: _Member, at_ms: int) -> str:
    """Return the operation of a registration."""
    return f"r{member.b}-{member.id}-{at_ms}"


def _of(member: _Member) -> dict[str, str]:
    return {**member.named, "id": str(member.id), "addr": member.address, "epoch": str(member.epoch)}


def _table(master: _Member, fields: dict[str, str]) -> dict[str, str]:
    return {"kind": "topics_changed", **master.named, "epoch": str(master.epoch), **fields}


def _in_entries(broker: str, held: Iterable[tuple[_Pair, str, str]]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield of pairs with their data before and after the slices, each with its `rows` and `count`."""
    slices: defaultdict[int, defaultdict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for pair, before, after in held:
        if before or after:
            slices[pair.slice][before, after].append(pair.topic)
    for slice, topics in slices.items():
        yield slice, _rows([[broker, *data, named] for data, named in sorted(topics.items())])


def _rows(rows: list[list[str | list[str]]]) -> dict[str, str]:
    return {"rows": msgspec.json.encode(rows).decode(), "count": str(sum(len(row[3]) for row in rows))}
