"""Topics: their lists (206, 224, 311-313), and queue data set or deleted beside registrations (217, 216)."""

from collections.abc import Callable, Collection, Iterable
from enum import Enum
from functools import partial
from typing import NamedTuple

from registry.growth.limits import DEFAULT_LIMITS, Limits
from registry.keys import Keys, split_member_key
from registry.long_work.limiter import Limiter
from registry.long_work.scan import members_of, scan_pages
from registry.long_work.sorting import in_order
from registry.ownership import UNGUARDED, Claim, Claimant, observable, refused
from registry.plans import Batch, Origin, Plan, ScriptCall, as_json, call, within
from registry.queue_data.queue_text import queue_text
from rocketmq_remoting.route import QueueData

BROKERS_MAX = 150  # rows of one script
FEW = 8
"""Of so many brokers at most all topics are read, whatever the others have."""
FLAG_UNIT = 1
FLAG_UNIT_SUB = 2


class UnitKind(Enum):
    """Which topics by topicSysFlag: 311, 312 and 313 (RocketMQ TopicSysFlag)."""

    UNIT = "unit"
    UNIT_SUB = "unit sub"
    UNIT_SUB_NOT_UNIT = "unit sub, not unit"

    def matches(self, flag: int) -> bool:
        unit, sub = bool(flag & FLAG_UNIT), bool(flag & FLAG_UNIT_SUB)
        return {"unit": unit, "unit sub": sub}.get(self.value, sub and not unit)


class AllTopics(NamedTuple):
    """The names of all topics. `settled` ones change with an event only: no clean-up is pending, which has none."""

    names: tuple[str, ...]
    settled: bool


def topic_names(keys: Keys, prefix: str = "") -> Plan[set[str]]:
    """Return the names of all topics, or of those with a prefix, in no order."""
    return (yield from members_of(keys.topics, prefix))


def topic_names_of(keys: Keys, brokers: Collection[str], prefix: str = "") -> Plan[set[str]]:
    """Return the names of topics with a prefix that any of these brokers has, in no order; unknown ones have none.

    Brokers of a cluster have mostly the same topics: of many it reads no further once it has all that there are."""
    topics: set[str] = set()
    left = (yield from topic_names(keys, prefix)) if len(brokers) > FEW else set()

    def take(topic: str, _: str) -> None:
        topics.add(topic)
        left.discard(topic)

    yield from _each_topic(keys, brokers, take, prefix, until=(lambda: not left) if left else _never)
    return topics


def all_topics(keys: Keys) -> Plan[tuple[str, ...]]:
    """Return the names of all topics (206), sorted."""
    return (yield from in_order((yield from topic_names(keys))))


def all_topics_settled(keys: Keys) -> Plan[AllTopics]:
    """Return the same, and whether they are settled.

    A clean-up may end, or the claim of a registration begin, while they are read: so it is looked for before and after.
    """
    pending = yield call("HLEN", keys.deferred)
    names = yield from topic_names(keys)
    pending += yield call("HLEN", keys.deferred)
    return AllTopics((yield from in_order(names)), not pending)


def topics_of_cluster(keys: Keys, cluster: str) -> Plan[tuple[str, ...]]:
    """Return the topics of any broker that the cluster lists (224), sorted; none of an unknown cluster."""
    brokers = yield from members_of(keys.cluster(cluster))
    return (yield from in_order((yield from topic_names_of(keys, brokers))))


def unit_topics(keys: Keys, kind: UnitKind) -> Plan[tuple[str, ...]]:
    """Return topics by the topicSysFlag of their first queue data, brokers in the order of their names."""
    seen: set[str] = set()
    wanted: list[str] = []

    def take(topic: str, text: str) -> None:
        if topic not in seen:
            seen.add(topic)
            if kind.matches(int(text.rpartition(",")[2])):
                wanted.append(topic)

    yield from _each_topic(keys, sorted((yield from members_of(keys.brokers))), take)
    return (yield from in_order(wanted))


def _never() -> bool:
    return False


def _each_topic(
    keys: Keys,
    names: Collection[str],
    take: Callable[[str, str], None],
    prefix: str = "",
    until: Callable[[], bool] = _never,
) -> Plan[None]:
    """Have each topic of these brokers taken, with the text of its queue data, one broker after the other."""
    epochs = (yield Batch(tuple(call("HGET", keys.broker(name), "epoch") for name in names))) if names else []
    for name, epoch in zip(names, epochs, strict=True):
        if until():
            return
        if epoch is not None:
            current_only = partial(_take_current, take, f"{epoch},")
            yield from scan_pages(keys.topics_of(name), current_only, prefix)


def _take_current(take: Callable[[str, str], None], start: str, page: dict[str, str]) -> None:
    for topic, text in page.items():
        if text.startswith(start):
            take(topic, text)


@observable
def register_topic(
    keys: Keys,
    topic: str,
    queues: Iterable[QueueData],
    origin: Origin,
    limits: Limits = DEFAULT_LIMITS,
    *,
    claimant: Claimant = UNGUARDED,
) -> Plan[str]:
    """Set queue data of one topic (217), in the given order up to the first unknown broker. Returns the last event id.

    More brokers than one script writes are written by several, after the limits of them all were checked. Raises
    LimitReached, and NotOwner for a broker of another principal."""
    limits.check_bytes("maxNameBytes", "topic", topic)
    rows = [(data.broker_name, queue_text(data)) for data in queues]
    checked = {"limits": limits} | ({} if claimant.operates else claimant.arguments())
    if len(rows) <= BROKERS_MAX:
        return (yield from _set_rows(keys, topic, origin, rows, limits, checked, claimant))
    rows = yield from _known(keys, topic, rows)
    yield from _set_rows(keys, topic, origin, rows, limits, checked | {"dry": True}, claimant)
    return (yield from _set_rows(keys, topic, origin, rows, limits, {}, claimant))


def delete_topic(
    keys: Keys, topic: str, cluster: str, origin: Origin, limiter: Limiter | None = None
) -> Plan[str]:
    """Delete a topic, of one cluster or ("") everywhere (216). Returns the last event id.

    From more brokers than one script writes, several delete it, in a place of the limiter."""
    written = yield from _write(keys, topic, "topic_delete", origin, {"cluster": cluster})
    if written != ["many"]:
        return str(written[0])
    many = _delete_from_many(keys, topic, cluster, origin)
    return (yield from many if limiter is None else within(limiter, many))


def _delete_from_many(keys: Keys, topic: str, cluster: str, origin: Origin) -> Plan[str]:
    names = yield call("HKEYS", keys.route(topic))
    event_id = ""
    for at in range(0, len(names), BROKERS_MAX):
        request = {"cluster": cluster, "names": names[at : at + BROKERS_MAX]}
        written = yield from _write(keys, topic, "topic_delete", origin, request)
        event_id = written[0] or event_id
    return event_id


def _known(keys: Keys, topic: str, rows: list[tuple[str, str]]) -> Plan[list[tuple[str, str]]]:
    """Return the rows before the first unknown broker; none of a new topic if there is such a broker."""
    names = [name for name, _ in rows]
    known = yield call("SMISMEMBER", keys.brokers, *names)
    if all(known):
        return rows
    return rows[: known.index(0)] if (yield call("EXISTS", keys.route(topic))) else []


def _set_rows(
    keys: Keys,
    topic: str,
    origin: Origin,
    rows: list[tuple[str, str]],
    limits: Limits,
    more: dict[str, object],
    claimant: Claimant,
) -> Plan[str]:
    """Have the rows set or, dry, checked, as many by a script as it may. Returns the last event id."""
    event_id = ""
    for at in range(0, len(rows), BROKERS_MAX):
        request = {"rows": rows[at : at + BROKERS_MAX]} | more
        written = yield from _write(keys, topic, "topic_register", origin, request)
        limits.check_reply(written, f"topic {topic!r}")
        if written[0] == "owned":
            _, name, broker_id, member = written
            holder = split_member_key(member)
            claim = Claim(holder[0], name, broker_id, holder[1])
            raise (yield from refused(keys, claimant, origin, claim, holder))
        event_id = written[0] or event_id
    return event_id


def _write(keys: Keys, topic: str, cause: str, origin: Origin, more: dict[str, object]) -> Plan[list[str]]:
    request = {"origin": origin, "cause": cause, "topic": topic} | more
    written = yield ScriptCall("set_topic", (keys.events_meta, keys.route(topic)), (as_json(request),))
    return list(written)
