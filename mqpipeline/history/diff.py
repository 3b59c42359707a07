"""What differs between two times, and what made it so."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple
from urllib.parse import quote, unquote

from mqpipeline.history.causes import Caused, began, came, ended, is_within, last, left
from mqpipeline.history.members import Group, State, groups
from mqpipeline.history.routes import QUEUES, Shown, shown
from mqpipeline.history.tables import FOREVER, GroupKey, RouteVersion, Tables, one_of, within

TOPICS_AT_ONCE: Final = 500


class Difference(NamedTuple):
    """A topic on a broker at two times. `fields` are those of Shown that differ, where both are there; `by` made it so,
    as far as the tables have it: sessions of brokers have no actor."""

    topic: str
    broker: str
    change: Literal["added", "removed", "changed"]
    fields: tuple[str, ...]
    by: Caused | None
    before: Shown | None
    after: Shown | None

    @property
    def key(self) -> str:
        """What the next page begins after: topic and broker, percent-encoded, with a blank between."""
        return f"{quote(self.topic)} {quote(self.broker)}"


class Living(NamedTuple):
    """A group that had a member between two times. `before` and `after` are its states then; `came` and `left` are what
    began and ended the last time over which it had a member; `latest` is the last member that came or went, None if
    none did; `touched`: a member or an attribute changed."""

    before: State | None
    after: State | None
    came: Caused
    left: Caused
    latest: Caused | None
    touched: bool


class Now(NamedTuple):
    """What is shown after, and by what."""

    shown: Shown
    began: Caused
    living: Living


def diff(
    tables: Tables,
    from_ms: int,
    to_ms: int,
    topic: str | None = None,
    *,
    acting_master: bool = False,
    after: str = "",
) -> Iterator[Difference]:
    """Yield each broker of each topic, or of one, of which 105 replied otherwise at `to_ms` than at `from_ms`; by topic
    and broker, those that follow on the key `after`.

    Of all topics, only what changed in between is looked at. `acting_master` as in `routes_at`."""
    between, last_one = _Between(tables, from_ms, to_ms, acting_master), _pair(after)
    changes = between.changes(topic, last_one[0])
    return (change for change in changes if not after or (change.topic, change.broker) > last_one)


class _Between:
    def __init__(self, tables: Tables, from_ms: int, to_ms: int, acting_master: bool) -> None:
        self._tables = tables
        self._from_ms, self._to_ms = from_ms, to_ms
        self._acting_master = acting_master
        self._living: dict[GroupKey, Living] = {}

    def changes(self, topic: str | None, from_topic: str) -> Iterator[Difference]:
        if topic is not None:
            versions = [*self._tables.routes_during(self._from_ms, self._to_ms, [topic])]
            self._look_at({version.broker for version in versions})
            yield from self._of_versions(versions)
            return
        self._look_at(None)
        touched = self._touched_topics(from_topic)
        for start in range(0, len(touched), TOPICS_AT_ONCE):
            topics = touched[start : start + TOPICS_AT_ONCE]
            yield from self._of_versions(self._tables.routes_during(self._from_ms, self._to_ms, topics))

    def _look_at(self, brokers: set[str] | None) -> None:
        of_while = groups(self._tables, self._from_ms, self._to_ms, brokers)
        self._living = {key: _living(group, self._from_ms, self._to_ms) for key, group in of_while.items()}

    def _touched_topics(self, from_topic: str) -> list[str]:
        """Return those from this one on of which a version began or ended, or a broker changed."""
        brokers = {key.broker for key, living in self._living.items() if living.touched}
        changed = within("from_ms", self._from_ms, self._to_ms) | within("to_ms", self._from_ms, self._to_ms)
        where = changed | one_of("broker", brokers)
        topics = self._tables.topics_of(self._from_ms, self._to_ms, where)
        return sorted(topic for topic in topics if topic >= from_topic)

    def _of_versions(self, versions: Iterable[RouteVersion]) -> Iterator[Difference]:
        """Yield the changes of all versions of some topics."""
        pairs: dict[tuple[str, str], list[RouteVersion]] = defaultdict(list)
        for version in versions:
            pairs[version.topic, version.broker].append(version)
        for pair in sorted(pairs):
            if change := self._of_pair(*pair, [one for one in pairs[pair] if self._matters(one)]):
                yield change

    def _matters(self, version: RouteVersion) -> bool:
        living = self._living.get(version.group)
        times = version.from_ms, version.until_ms
        return living is not None and (
            living.touched or any(is_within(ms, self._from_ms, self._to_ms) for ms in times)
        )

    def _of_pair(self, topic: str, broker: str, versions: Sequence[RouteVersion]) -> Difference | None:
        before = next((side for version in versions if (side := self._before(version))), None)
        now = next((one for version in versions if (one := self._now(version))), None)
        if before is None and now is None:
            return None
        if now is None:
            gone = last(gone for version in versions if (gone := self._gone(version)).ms <= self._to_ms)
            return Difference(topic, broker, "removed", (), gone, before, None)
        if before is None:
            return Difference(topic, broker, "added", (), _added_by(now, versions), None, now.shown)
        fields = tuple(
            name for name in Shown.__struct_fields__ if getattr(before, name) != getattr(now.shown, name)
        )
        by = self._changed_by(fields, now)
        return Difference(topic, broker, "changed", fields, by, before, now.shown) if fields else None

    def _before(self, version: RouteVersion) -> Shown | None:
        state = self._living[version.group].before
        if state is None or not version.from_ms <= self._from_ms < version.until_ms:
            return None
        return shown(version, state, acting_master=self._acting_master)

    def _now(self, version: RouteVersion) -> Now | None:
        living = self._living[version.group]
        if living.after is None or not version.from_ms <= self._to_ms < version.until_ms:
            return None
        side = shown(version, living.after, acting_master=self._acting_master)
        return Now(side, began(version), living)

    def _gone(self, version: RouteVersion) -> Caused:
        """Return the end of the version, or of its group where that was first, and the last."""
        living = self._living[version.group]
        first = version.until_ms <= living.came.ms or version.until_ms <= living.left.ms
        return ended(version) if first else living.left

    def _changed_by(self, fields: Sequence[str], now: Now) -> Caused | None:
        queues = any(name in QUEUES for name in fields)
        if queues and now.began.ms > self._from_ms:
            return now.began
        if not queues and ("addrs" in fields or "cluster" in fields):
            return now.living.latest
        return _attributes_by(now.living)


def _living(group: Group, from_ms: int, to_ms: int) -> Living:
    until_ms, first = -FOREVER, group.sessions[0]
    began_by = came(first)
    for session in group.sessions:
        if session.start_ms > until_ms:
            began_by = came(session)
        until_ms = max(until_ms, session.until_ms)
    ends = [left(session) for session in group.sessions]
    within_it = [
        cause for cause in (*ends, *map(came, group.sessions)) if is_within(cause.ms, from_ms, to_ms)
    ]
    drains = (version.drain.until_ms for version in group.held if version.drain)
    times = (*(version.from_ms for version in group.held), *(ms for ms in drains if ms is not None))
    return Living(
        group.at(from_ms),
        group.at(to_ms),
        began_by,
        last(ends) or ends[0],
        last(within_it),
        bool(within_it) or any(is_within(ms, from_ms, to_ms) for ms in times),
    )


def _added_by(now: Now, versions: Iterable[RouteVersion]) -> Caused:
    """Return the begin of the version that is new; or of its group's time, where none is."""
    ends = {version.until_ms for version in versions}
    new = (
        began(version)
        for version in versions
        if version.from_ms >= now.living.came.ms and version.from_ms not in ends
    )
    return last(new) or now.living.came


def _attributes_by(living: Living) -> Caused | None:
    """Return what changed the drain, the zone or acting; a drain names its owner as actor."""
    was, now = living.before and living.before.drain, living.after and living.after.drain
    since_before, since = (state and state.since for state in (living.before, living.after))
    if was is not None and was.until_ms is not None and now is None and since_before == since:
        return Caused(was.until_ms, None, "drain_end")
    if since is None:
        return None
    if was is None and now is not None:
        return Caused(*since, "drain", now.owner)
    return Caused(*since, "register" if was is None or now is not None else "undrain")


def _pair(key: str) -> tuple[str, str]:
    topic, _, broker = key.partition(" ")
    return unquote(topic), unquote(broker)
