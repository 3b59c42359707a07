"""The checks: functions from facts to what one sees, each for rules of the catalogue."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from registry.clock import LATE_MS
from registry.doctor.facts import REPAIRS, Facts
from registry.drains import StoredDrain
from registry.drift import DriftReport
from registry.events.consumers import SILENT_MS
from registry.members import Broker
from registry.store.check import Memory
from registry.task_times import CHECK, TASKS, WALK, TaskTime, is_late

SECOND_MS: Final = 1_000
NAMED: Final = 5
TEXT_MAX: Final = 200
MASTER: Final = 0
DAMAGE_RECENT_MS: Final = 3_600_000
GONE_FOR_MS: Final = 60_000
"""A broker that is started again is back by then."""
CLOCK_RECENT_MS: Final = 24 * 3_600_000
WALK_LATE_MS: Final = 3 * 60_000
"""Walks begin every 25 s, and one over 10,000 topics of 30 brokers takes a minute."""
WALKS_LATE: Final = 3
"""How many times what the last walk took the next may take, where tables are larger."""
LIMIT_NEAR: Final = 0.8
HALF: Final = 2


class Seen(msgspec.Struct, frozen=True):
    """What one sees of a rule of the catalogue, and all brokers, clusters, options, jobs or consumers it is about;
    none where it is about the store. `mild`: a warning, though the rule is of errors."""

    rule: str
    what: str
    subjects: tuple[str, ...] = ()
    mild: bool = False


def check(facts: Facts) -> Iterator[Seen]:
    """Yield what is seen, each rule once at most, but `limits-near`."""
    yield from _drained(facts)
    yield from _without_master(facts)
    yield from _gone(facts)
    yield from _refused(facts)
    yield from _mirrored(facts)
    yield from _not_writable(facts)
    yield from _limits(facts)
    yield from _tables(facts)
    if facts.replica_of is not None:
        what = f"the store is a read-only replica of {facts.replica_of}: nothing can be registered or changed"
        yield Seen("store-replica", what)
    yield from _memory(facts.memory)
    yield from _jobs(facts)
    yield from _held(facts)
    yield from _ending(facts)
    yield from _silent(facts)
    yield from _clock_back(facts)
    yield from _behind(facts)
    yield from _consumers(facts)
    yield from _drift(facts)
    if (refused := facts.access_file_refused) is not None:
        yield Seen("access-file-refused", f"the access file is not taken: {refused}")
    if listed := facts.discovery_loopback:
        what = f"/rocketmq/nsaddr answers other machines loopback addresses: {_named(listed, len(listed))}"
        yield Seen("discovery-loopback", what, listed)
    if facts.unread:
        texts = (f"{what} ({why[:TEXT_MAX]})" for what, why in facts.unread.items())
        yield Seen("store-unreadable", f"cannot be read: {', '.join(texts)}", tuple(facts.unread))


def _drained(facts: Facts) -> Iterator[Seen]:
    """Yield drained brokers, but those that are gone."""
    drained = [broker for broker in facts.drained if broker.cluster is not None]
    if drained:
        texts = (f"{broker.name} ({_drain_text(broker.drain)})" for broker in drained)
        what = f"drained brokers, to which no producer writes: {_named(texts, len(drained))}"
        yield Seen("broker-drained", what, tuple(broker.name for broker in drained))


def _drain_text(drain: StoredDrain | None) -> str:
    if drain is None:
        return "by what is no drain, which another program wrote into the store"
    since = f" since {_time(drain.since_ms)}" if drain.since_ms is not None else ""
    until = "without an end" if drain.until_ms is None else f"until {_time(drain.until_ms)}"
    return f"by {drain.owner[:TEXT_MAX]}{since}, {until}: {drain.reason[:TEXT_MAX]}"


def _without_master(facts: Facts) -> Iterator[Seen]:
    without = [broker for broker in facts.brokers if _has_no_master(broker)]
    if without:
        names = tuple(broker.name for broker in without)
        acting = all(broker.acting_master for broker in without)
        more = ", but slaves act for them" if acting else ""
        what = f"no master (id 0) is registered of {_named(names, len(names))}, only slaves{more}"
        yield Seen("broker-without-master", what, names, mild=acting)


def _has_no_master(broker: Broker) -> bool:
    ids = [member.id for member in broker.members if member.lease.state != "overdue"]
    return bool(ids) and MASTER not in ids


def _gone(facts: Facts) -> Iterator[Seen]:
    now_ms = facts.clock.now_ms
    gone = [one for one in facts.gone if now_ms - one.at_ms >= GONE_FOR_MS]
    if gone:
        texts = (
            f"{one.name.broker} (id {one.name.id} in {one.name.cluster}, {_ago(one.at_ms, now_ms)})"
            for one in gone
        )
        what = f"members of brokers that left without unregistering: {_named(texts, len(gone))}"
        yield Seen("broker-gone", what, tuple(dict.fromkeys(one.name.broker for one in gone)))


def _refused(facts: Facts) -> Iterator[Seen]:
    """Yield registrations that brokers repeat and are refused, since another member has what they take."""
    claims = {one.claimed: one.at_ms for one in reversed(facts.refused)}
    if claims:
        texts = (
            f"{one.addr} as {one.broker} (id {one.id or 'any'} in {one.cluster}), which {one.holder} has"
            for one in claims
        )
        what = f"brokers are refused, since others have their places: {_named(texts, len(claims))}"
        yield Seen("broker-refused", what, tuple(dict.fromkeys(one.broker for one in claims)))


def _mirrored(facts: Facts) -> Iterator[Seen]:
    marks = {
        broker.name: member.mirrored
        for broker in facts.brokers
        for member in broker.members
        if member.mirrored is not None
    }
    if marks:
        texts = (f"{name} (from {mark[:TEXT_MAX]})" for name, mark in marks.items())
        what = f"brokers that a mirror keeps, and that have not registered themselves: {_named(texts, len(marks))}"
        yield Seen("broker-mirrored", what, tuple(marks))


def _not_writable(facts: Facts) -> Iterator[Seen]:
    if facts.counts is None:
        return
    explained = {broker.name for broker in facts.drained}
    explained |= {broker.name for broker in facts.brokers if _has_no_master(broker)}
    wiped = tuple(name for name in facts.counts.wiped if name not in explained)
    if wiped:
        yield Seen("broker-wiped", f"no topic can be written of {_named(wiped, len(wiped))}", wiped)
    without = {name: counts.without_writable_master for name, counts in facts.counts.clusters.items()}
    clusters = tuple(name for name, number in without.items() if number)
    if clusters:
        texts = (f"{without[name]} in cluster {name}" for name in clusters)
        what = f"topics that no producer can write to: {_named(texts, len(clusters))}"
        yield Seen("topic-not-writable", what, clusters)


def _limits(facts: Facts) -> Iterator[Seen]:
    usage, limits = facts.usage, facts.limits
    hosts = _named((f"{host} ({number})" for host, number in usage.hosts), len(usage.hosts))
    for option, what, used, most, more in (
        ("maxBrokers", "brokers", usage.brokers, limits.max_brokers, hosts and f"; they come from {hosts}"),
        ("maxTopics", "topics", usage.topics, limits.max_topics, ""),
        ("maxKvNamespaces", "KV namespaces", usage.kv_namespaces, limits.max_kv_namespaces, ""),
    ):
        if used >= most * LIMIT_NEAR:
            yield Seen("limits-near", f"{used} of {most} {what} that {option} allows{more}", (option,))
    most_of_host = limits.brokers_of_host
    for host, number in usage.hosts:
        if most_of_host is not None and number >= most_of_host * LIMIT_NEAR:
            what = (
                f"{number} brokers come from {host}, of {most_of_host} that maxPercentOfHost allows one host"
            )
            yield Seen("limits-near", what, ("maxPercentOfHost", host))


def _tables(facts: Facts) -> Iterator[Seen]:
    repair, now_ms = facts.repair, facts.clock.now_ms
    if repair.repaired.total and _within(repair.repaired_ms, now_ms, DAMAGE_RECENT_MS):
        yield Seen(
            "damaged-tables",
            f"tables of the store were damaged: {repair.repaired.total} rows repaired so far, the last "
            f"{_ago(repair.repaired_ms, now_ms)}",
        )
    late_ms = max(WALK_LATE_MS, WALKS_LATE * (repair.walk_took_ms or 0))
    since_ms = now_ms - _compared_ms(facts)
    if since_ms > late_ms and not _late_jobs(facts) and REPAIRS not in facts.unread:
        what = f"no scheduler has compared the tables of the store for {since_ms // SECOND_MS} s"
        yield Seen("tables-not-compared", what)


def _memory(memory: Memory) -> Iterator[Seen]:
    if memory.evicting_policy:
        what = f"the store evicts keys when its memory is short: maxmemory-policy is {memory.evicting_policy}"
        yield Seen("store-evicts", what)
    elif memory.bound and memory.used >= memory.bound * LIMIT_NEAR:
        what = f"{memory.used} of {memory.bound} bytes of maxmemory are used"
        yield Seen("store-full", what, mild=memory.used < memory.bound)


def _compared_ms(facts: Facts) -> int:
    """Return when tables were compared last, or the service began, now if it never did; what is ahead of the clock was
    noted before that went back."""
    now_ms = facts.clock.now_ms
    noted = (facts.repair.walked_ms, facts.repair.walking_ms, facts.clock.started_ms)
    return max((at for at in noted if at is not None and at < now_ms + WALK_LATE_MS), default=now_ms)


def _late_jobs(facts: Facts) -> dict[str, TaskTime | None]:
    """Return the late jobs, but the walk, which takes as long as tables are large, and the check of routes, which need
    not run."""
    if facts.tasks is None:
        return {}
    clock = facts.clock
    last = {task: facts.tasks.get(task) for task in TASKS if task not in (WALK, CHECK)}
    return {task: time for task, time in last.items() if is_late(task, time, clock.now_ms, clock.started_ms)}


def _jobs(facts: Facts) -> Iterator[Seen]:
    late = _late_jobs(facts)
    if late:
        texts = (
            f"{task} {_ago(time.at_ms, facts.clock.now_ms)} (every {time.every_s} s)"
            if time
            else f"{task} never"
            for task, time in late.items()
        )
        yield Seen("jobs-late", f"periodic jobs ended well last: {', '.join(texts)}", tuple(late))


def _held(facts: Facts) -> Iterator[Seen]:
    left_ms = (facts.clock.hold_until_ms or 0) - facts.clock.now_ms
    if left_ms > 0:
        states = {broker.name: {member.lease.state for member in broker.members} for broker in facts.brokers}
        names = tuple(name for name, found in states.items() if "held" in found)
        of = f": of {_named(names, len(names))}, not registered in time" if names else ""
        yield Seen("leases-held", f"leases are held for another {left_ms // SECOND_MS} s{of}", names)


def _ending(facts: Facts) -> Iterator[Seen]:
    """Yield brokers of which no heartbeat came for more than half of their lease, unless a hold explains it."""
    if (facts.clock.hold_until_ms or 0) > facts.clock.now_ms:
        return
    ending = [
        (broker.name, member)
        for broker in facts.brokers
        for member in broker.members
        if member.lease.is_ending
    ]
    if ending:
        ending.sort(key=lambda one: one[1].lease.remaining_ms)
        texts = (
            f"{name} (id {member.id}, {member.address}: {member.lease.remaining_ms // SECOND_MS} s left of "
            f"{member.lease.timeout_ms // SECOND_MS} s)"
            for name, member in ending
        )
        what = f"leases of which more than half passed without a heartbeat: {_named(texts, len(ending))}"
        yield Seen("lease-ending", what, tuple(dict.fromkeys(name for name, _ in ending)))


def _silent(facts: Facts) -> Iterator[Seen]:
    """Yield silent workers, unless all are: then the clock of leases is late, which `/readyz` has."""
    if facts.silent and not facts.clock.late:
        texts = (f"{worker} ({_ago(at_ms, facts.clock.now_ms)})" for worker, at_ms in facts.silent.items())
        what = f"remoting workers (host.process.start) that ticked last: {_named(texts, len(facts.silent))}"
        yield Seen("worker-silent", what, tuple(facts.silent))


def _clock_back(facts: Facts) -> Iterator[Seen]:
    clock = facts.clock
    if _within(clock.back_at_ms, clock.now_ms, CLOCK_RECENT_MS):
        back_s = (clock.back_ms or 0) / SECOND_MS
        what = f"the clock of the store went back by {back_s:.1f} s, {_ago(clock.back_at_ms, clock.now_ms)}"
        yield Seen("store-clock-back", what)


def _behind(facts: Facts) -> Iterator[Seen]:
    """Yield how far workers are behind the event stream; nothing where none follows it, which `/readyz` says."""
    behind_ms = facts.clock.behind_now_ms or 0
    if behind_ms > LATE_MS and not facts.clock.unfollowed:
        what = (
            f"what a worker has applied of the event stream is {behind_ms / SECOND_MS:.0f} s behind its end"
        )
        yield Seen("follower-late", what)


def _consumers(facts: Facts) -> Iterator[Seen]:
    now_ms = facts.clock.now_ms
    silent = sorted(
        name
        for name, consumer in facts.consumers.items()
        if consumer.hold and now_ms - consumer.at_ms > SILENT_MS // HALF
    )
    if silent:
        texts = (f"{name} ({_ago(facts.consumers[name].at_ms, now_ms)})" for name in silent)
        what = f"consumers for which the event stream is kept said last what they have: {_named(texts, len(silent))}"
        yield Seen("consumer-silent", what, tuple(silent))


def _drift(facts: Facts) -> Iterator[Seen]:
    """Yield what comparisons of name servers found; of one that is stale that it is, and nothing of what it found."""
    now_ms = facts.clock.now_ms
    stale = {name for name, one in facts.comparisons.items() if one.is_stale(now_ms)}
    reports = {name: one.report for name, one in facts.comparisons.items() if name not in stale}
    for rule, outcome, what, text_of in (
        ("drift", "drift", "name servers differ that should agree", _counts_text),
        ("drift-unreachable", "unreachable", "comparisons that got no answer of a name server", _silent_text),
    ):
        names = tuple(name for name, report in reports.items() if report.outcome == outcome)
        if names:
            texts = (f"{name} ({text_of(reports[name])})" for name in names)
            yield Seen(rule, f"{what}: {_named(texts, len(names))}", names)
    if stale:
        texts = (f"{name} ({_ago(facts.comparisons[name].at_ms, now_ms)})" for name in sorted(stale))
        what = f"comparisons of name servers that were reported last: {_named(texts, len(stale))}"
        yield Seen("drift-stale", what, tuple(sorted(stale)))


def _counts_text(report: DriftReport) -> str:
    counts = ", ".join(f"{number} {kind}" for kind, number in report.counts.items())
    return f"{counts} between {' and '.join(report.name_servers)}"


def _silent_text(report: DriftReport) -> str:
    return "; ".join(f"{one.name_server}: {one.reason}" for one in report.unreachable)


def _within(at_ms: int | None, now_ms: int, span_ms: int) -> bool:
    return at_ms is not None and now_ms - at_ms < span_ms


def _ago(at_ms: int | None, now_ms: int) -> str:
    return f"{max(now_ms - (at_ms or 0), 0) // SECOND_MS} s ago"


def _named(names: Iterable[str], number: int) -> str:
    """Return the first names, and the number of the others."""
    shown = [name for name, _ in zip(names, range(NAMED), strict=False)]
    return ", ".join(shown) + (f" and {number - NAMED} more" if number > NAMED else "")


def _time(at_ms: int) -> str:
    """Return `2026-11-28T04:36:13Z`; a number that is no time as it is."""
    try:
        return datetime.fromtimestamp(at_ms / SECOND_MS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(at_ms)
