"""The checks of what the store shows: rows of facts, and what is seen in them."""

from typing import Any

import pytest
from msgspec.structs import replace

from registry.doctor.checks import Seen, check
from registry.doctor.facts import Facts
from registry.drains import DrainedBroker, StoredDrain
from registry.drift import Comparison, DriftReport, Unanswered
from registry.events.consumers import Consumer
from registry.gone_members import GoneMember, MemberName
from registry.growth.limits import DEFAULT_LIMITS
from registry.growth.usage import Usage
from registry.members import Broker, Lease, LeaseClock, Member
from registry.refused_claims import Claimed, RefusedClaim
from registry.repair.state import Repaired, RepairState
from registry.store.check import Memory
from registry.task_times import CHECK, COUNT, TASKS, WALK, TaskTime
from registry.topic_counts import ClusterCounts, TopicCounts

NOW = 1_795_255_839_049
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
CLOCK = LeaseClock(NOW, NOW, NOW - DAY, None, NOW)
REPAIR = RepairState(Repaired(), None, NOW - MINUTE, None, None)
REFUSED = RefusedClaim(Claimed("c1", "b1", "0", "10.0.0.2:1", "two_addresses", "10.0.0.1:1"), NOW - MINUTE)
DRAIN = StoredDrain("alice", "upgrade", None, 1_700_000_000_000)
DRIFT, TWO = DriftReport, ("h1:9876", "h2:9876")
ON_TIME = {task: TaskTime(NOW - 1_000, 1) for task in TASKS}
HEALTHY = Facts(
    clock=CLOCK, limits=DEFAULT_LIMITS, usage=Usage(1, 1, 1, (("10.0.0.1", 1),)), repair=REPAIR, tasks=ON_TIME
)


def broker(
    name: str,
    *ids: int,
    left_ms: int = MINUTE,
    kept_ms: int = 0,
    acting: bool = False,
    mirrored: str | None = None,
) -> Broker:
    end_ms = NOW + left_ms
    lease = Lease(NOW, end_ms, max(end_ms, NOW + kept_ms), 2 * MINUTE)
    members = tuple(
        Member("c1", number, f"10.0.0.{number}:1", None, None, (), 0, (), frozenset(), lease, mirrored)
        for number in ids
    )
    return Broker(name, "c1", ("c1",), 1, acting, None, members)


def counts(without_master: int = 0, *wiped: str) -> TopicCounts:
    return TopicCounts(
        NOW, {"c1": ClusterCounts(9, 9, 9, without_master), "c2": ClusterCounts(1, 1, 1, 0)}, wiped
    )


def tasks(**more: TaskTime) -> dict[str, TaskTime]:
    return ON_TIME | more


def without(task: str) -> dict[str, TaskTime]:
    return {name: time for name, time in ON_TIME.items() if name != task}


def limited(**more: int) -> Any:
    return replace(DEFAULT_LIMITS, **more)


def compared(report: DriftReport, ago_ms: int = 0) -> dict[str, Comparison]:
    """Return one comparison, reported so long ago."""
    return {"d": Comparison(NOW - ago_ms, NOW - DAY, report)}


SEEN: list[tuple[str, dict[str, Any], list[tuple[str, tuple[str, ...]]]]] = [
    ("healthy", {}, []),
    ("drained", {"drained": (DrainedBroker("b1", DRAIN, "c1", 2),)}, [("broker-drained", ("b1",))]),
    ("drained and gone", {"drained": (DrainedBroker("b1", DRAIN, None, 0),)}, []),
    ("a master", {"brokers": (broker("b1", 0, 1),)}, []),
    ("no master", {"brokers": (broker("b1", 1), broker("b2", 0))}, [("broker-without-master", ("b1",))]),
    ("none that lives", {"brokers": (broker("b1", 1, left_ms=-1),)}, []),
    (
        "an access file with an error",
        {"access_file_refused": "/etc/access.toml: roles"},
        [("access-file-refused", ())],
    ),
    (
        "name servers on loopback for other machines",
        {"discovery_loopback": ("127.0.0.1:9876",)},
        [("discovery-loopback", ("127.0.0.1:9876",))],
    ),
    ("one that left", {"gone": (GoneMember(MemberName("c1", "b1", "0"), NOW - MINUTE),)}, [("broker-gone", ("b1",))]),
    ("mirrored", {"brokers": (broker("b1", 0, mirrored="10.0.0.1:9876"), broker("b2", 0))},
     [("broker-mirrored", ("b1",))]),
    ("one that is refused", {"refused": (REFUSED, REFUSED)}, [("broker-refused", ("b1",))]),
    ("one that is started again", {"gone": (GoneMember(MemberName("c1", "b1", "0"), NOW - MINUTE + 1),)}, []),
    ("wiped", {"counts": counts(0, "b1")}, [("broker-wiped", ("b1",))]),
    ("wiped and drained, and gone", {"counts": counts(0, "b1"), "drained": (DrainedBroker("b1", DRAIN, None, 0),)}, []),
    ("wiped without master", {"counts": counts(0, "b1"), "brokers": (broker("b1", 1),)},
     [("broker-without-master", ("b1",))]),
    ("topics", {"counts": counts(3)}, [("topic-not-writable", ("c1",))]),
    ("half full", {"usage": Usage(1500, 1, 1, ())}, []),
    ("below the mark", {"usage": Usage(2399, 1, 1, ())}, []),
    ("near", {"usage": Usage(2400, 1, 1, ())}, [("limits-near", ("maxBrokers",))]),
    ("topics near", {"usage": Usage(1, 8, 1, ()), "limits": limited(max_topics=10)}, [("limits-near", ("maxTopics",))]),
    ("KV near", {"usage": Usage(1, 1, 160, ())}, [("limits-near", ("maxKvNamespaces",))]),
    ("a host", {"usage": Usage(1300, 1, 1, (("10.0.0.66", 1200), ("10.0.0.7", 100)))},
     [("limits-near", ("maxPercentOfHost", "10.0.0.66"))]),
    ("a host that may have all", {"usage": Usage(1300, 1, 1, (("10.0.0.66", 1300),)),
                                  "limits": limited(max_percent_of_host=100)}, []),
    ("damaged", {"repair": replace(REPAIR, repaired=Repaired(topics=7), repaired_ms=NOW - MINUTE)},
     [("damaged-tables", ())]),
    ("damaged two hours ago", {"repair": replace(REPAIR, repaired=Repaired(topics=7), repaired_ms=NOW - 120 * MINUTE)},
     []),
    ("no walk", {"repair": replace(REPAIR, walked_ms=NOW - 190_000)}, [("tables-not-compared", ())]),
    ("never a walk", {"repair": replace(REPAIR, walked_ms=None)}, [("tables-not-compared", ())]),
    ("never a walk, and young", {"repair": replace(REPAIR, walked_ms=None),
                                 "clock": replace(CLOCK, started_ms=NOW - MINUTE)}, []),
    ("a walk that takes long", {"repair": replace(REPAIR, walked_ms=NOW - 190_000, walk_took_ms=90_000)}, []),
    ("a walk that takes too long", {"repair": replace(REPAIR, walked_ms=NOW - 280_000, walk_took_ms=90_000)},
     [("tables-not-compared", ())]),
    ("a walk that goes on", {"repair": replace(REPAIR, walked_ms=NOW - DAY, walking_ms=NOW - 10_000)}, []),
    ("a walk that went on before the clock went back",
     {"repair": replace(REPAIR, walked_ms=NOW - 190_000, walking_ms=NOW + DAY)}, [("tables-not-compared", ())]),
    ("a job that is 62 s late", {"tasks": tasks(expire_brokers=TaskTime(NOW - 62_000, 1))}, []),
    ("a job that is late", {"tasks": tasks(expire_brokers=TaskTime(NOW - 64_000, 1))},
     [("jobs-late", ("expire_brokers",))]),
    ("a count of many topics", {"tasks": tasks(**{COUNT: TaskTime(NOW - 5 * MINUTE, 30)})}, []),
    ("no count for long", {"tasks": tasks(**{COUNT: TaskTime(NOW - 11 * MINUTE, 30)})}, [("jobs-late", (COUNT,))]),
    ("the walk has a rule of its own", {"tasks": tasks(**{WALK: TaskTime(NOW - DAY, 25)})}, []),
    ("a job that never ran", {"tasks": without("trim_events")}, [("jobs-late", ("trim_events",))]),
    ("a job that never ran of a young service", {"tasks": without("trim_events"),
                                                 "clock": replace(CLOCK, started_ms=NOW - MINUTE)}, []),
    ("no job runs, nor the walk: one cause", {"tasks": {}, "repair": replace(REPAIR, walked_ms=NOW - DAY)},
     [("jobs-late", tuple(task for task in TASKS if task not in (WALK, CHECK)))]),
    ("held", {"clock": replace(CLOCK, hold_until_ms=NOW + 30_000),
              "brokers": (broker("b1", 0, left_ms=-1, kept_ms=30_000), broker("b2", 0))}, [("leases-held", ("b1",))]),
    ("a hold that is over", {"clock": replace(CLOCK, hold_until_ms=NOW - 1)}, []),
    ("leases that end", {"brokers": (broker("b1", 0, left_ms=MINUTE), broker("b2", 0, 1, left_ms=MINUTE - 1),
                                     broker("b3", 0, left_ms=1), broker("b4", 0, left_ms=0))},
     [("lease-ending", ("b3", "b2"))]),
    ("leases that end while a hold explains it", {"clock": replace(CLOCK, hold_until_ms=NOW + 30_000),
                                                  "brokers": (broker("b1", 0, left_ms=1),)}, [("leases-held", ())]),
    ("the clock went back", {"clock": replace(CLOCK, back_ms=3_600_000, back_at_ms=NOW - MINUTE)},
     [("store-clock-back", ())]),
    ("the clock went back long ago", {"clock": replace(CLOCK, back_ms=3_600_000, back_at_ms=NOW - 2 * DAY)}, []),
    ("a worker that is behind", {"clock": replace(CLOCK, behind_ms=5_001, behind_at_ms=NOW)}, [("follower-late", ())]),
    ("one that is not", {"clock": replace(CLOCK, behind_ms=5_000, behind_at_ms=NOW)}, []),
    ("one that was", {"clock": replace(CLOCK, behind_ms=90_000, behind_at_ms=NOW - 5_001)}, []),
    ("none follows, which /readyz says",
     {"clock": replace(CLOCK, follow_ms=NOW - 6_000, behind_ms=6_000, behind_at_ms=NOW)}, []),
    ("a worker that stands still", {"silent": {"h.7.a": NOW - 6_000}}, [("worker-silent", ("h.7.a",))]),
    ("all of them: no worker watches leases",
     {"silent": {"h.7.a": NOW - 6_000}, "clock": replace(CLOCK, tick_ms=NOW - 6_000)}, []),
    ("repairs that cannot be read", {"repair": replace(REPAIR, walked_ms=None), "unread": {"repairs": "WRONGTYPE"}},
     [("store-unreadable", ("repairs",))]),
    ("jobs that cannot be read", {"tasks": None, "unread": {"jobs": "WRONGTYPE"}},
     [("store-unreadable", ("jobs",))]),
    ("a replica", {"replica_of": "h:6379"}, [("store-replica", ())]),
    ("it evicts", {"memory": Memory(10, 10, "allkeys-lru")}, [("store-evicts", ())]),
    ("it is full", {"memory": Memory(11, 10)}, [("store-full", ())]),
    ("it is nearly full", {"memory": Memory(8, 10)}, [("store-full", ())]),
    ("it has room", {"memory": Memory(7, 10)}, []),
    ("it has no bound", {"memory": Memory(7, 0)}, []),
    ("a consumer", {"consumers": {"p": Consumer(at_ms=NOW - DAY // 3, hold=True)}}, []),
    ("a silent one", {"consumers": {"p": Consumer(at_ms=NOW - DAY, hold=True)}}, [("consumer-silent", ("p",))]),
    ("name servers that agree", {"comparisons": compared(DRIFT(TWO, 60))}, []),
    ("name servers that differ", {"comparisons": compared(DRIFT(TWO, 60, {"kv-differs": 2}))}, [("drift", ("d",))]),
    ("one of them that does not answer",
     {"comparisons": compared(DRIFT(TWO, 60, {}, (Unanswered(TWO[1], "refused"),)))}, [("drift-unreachable", ("d",))]),
    ("a comparison in time", {"comparisons": compared(DRIFT(TWO, 60), MINUTE)}, []),
    ("one that is not reported any more, whatever it found",
     {"comparisons": compared(DRIFT(TWO, 60, {"kv-differs": 2}), MINUTE + 1)}, [("drift-stale", ("d",))]),
    ("a silent one that nothing is kept for", {"consumers": {"p": Consumer(at_ms=NOW - DAY)}}, []),
]  # fmt: skip


def seen_in(**more: Any) -> list[Seen]:
    return [*check(replace(HEALTHY, **more))]


@pytest.mark.parametrize(("more", "expected"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
def test_checks(more: dict[str, Any], expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(seen.rule, seen.subjects) for seen in seen_in(**more)] == expected


def test_a_store_that_is_nearly_full_is_a_warning() -> None:
    assert [seen_in(memory=Memory(used, 10))[0].mild for used in (9, 10)] == [True, False]


@pytest.mark.parametrize(
    ("drain", "text"),
    [
        (DRAIN, "by alice since 2023-11-14T22:13:20Z, without an end: upgrade"),
        (
            replace(DRAIN, since_ms=None, until_ms=1_700_000_001_000),
            "by alice, until 2023-11-14T22:13:21Z: upgrade",
        ),
        (replace(DRAIN, since_ms=10**17), f"by alice since {10**17}, without an end: upgrade"),
        (None, "by what is no drain, which another program wrote into the store"),
    ],
)
def test_what_a_drain_is(drain: StoredDrain | None, text: str) -> None:
    (seen,) = seen_in(drained=(DrainedBroker("b1", drain, "c1", 2),))
    assert seen.what == f"drained brokers, to which no producer writes: b1 ({text})"


def test_what_cannot_be_read_is_named() -> None:
    (seen,) = seen_in(unread={"jobs": "WRONGTYPE", "drains": "NOPERM"})
    assert seen.what == "cannot be read: jobs (WRONGTYPE), drains (NOPERM)"


def test_a_comparison_is_told_with_its_counts_and_name_servers() -> None:
    (seen,) = seen_in(comparisons=compared(DRIFT(TWO, 60, {"topic-missing": 3, "kv-differs": 1})))
    assert seen.what == (
        "name servers differ that should agree: d (3 topic-missing, 1 kv-differs between h1:9876 and h2:9876)"
    )


def test_few_of_many_are_named() -> None:
    (seen,) = seen_in(brokers=tuple(broker(f"b{number}", 1) for number in range(7)))
    assert "b0, b1, b2, b3, b4 and 2 more" in seen.what
    assert len(seen.subjects) == 7


@pytest.mark.parametrize("acting", [True, False])
def test_a_slave_that_acts_makes_it_less_bad(acting: bool) -> None:
    (seen,) = seen_in(brokers=(broker("b1", 1, acting=acting),))
    assert (seen.mild, "slaves act" in seen.what) == (acting, acting)


def test_what_late_jobs_and_full_limits_say() -> None:
    late, full = (
        seen_in(**more)[0].what
        for more in (
            {"tasks": tasks(trim_events=TaskTime(NOW - 100_000, 10))},
            {"usage": Usage(2700, 1, 1, (("10.0.0.1", 9), ("10.0.0.2", 8)))},
        )
    )
    assert late == "periodic jobs ended well last: trim_events 100 s ago (every 10 s)"
    assert full == "2700 of 3000 brokers that maxBrokers allows; they come from 10.0.0.1 (9), 10.0.0.2 (8)"
