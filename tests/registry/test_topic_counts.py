"""Topics and queues of clusters, and topics that no producer can write to."""

from collections.abc import Callable

import pytest

from registry import topic_counts
from registry.drains import Drain, drain
from registry.plans import Call, Pause, ask
from registry.queue_data.rewrite import wipe_write_perm
from registry.topic_counts import KEPT_MS, ClusterCounts, Counted, TopicCounts
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.route import QueueData
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

READ_ONLY = "8,8,4,0"


@pytest.fixture
def ns(redis: Store) -> Namespace:
    return Namespace(redis)


def counted(ns: Namespace) -> TopicCounts:
    return ns.run(topic_counts.count(ns.keys)).counts


def without_writable_master(ns: Namespace) -> dict[str, int]:
    counts = counted(ns)
    return {cluster: of.without_writable_master for cluster, of in counts.clusters.items()}


def drained(ns: Namespace, name: str) -> None:
    ns.run(drain(ns.keys, name, Drain("alice", "kernel"), origin()))


def test_a_topic_counts_once_in_a_cluster_and_its_queues_at_each_broker(ns: Namespace) -> None:
    ns.register("b1", topics={"T": "8,4,6,0", "U": "1,1,6,0"})
    ns.register("b2", topics={"T": "8,4,6,0", "V": "1,1,6,0"})
    ns.register("b3", topics={"T": "2,2,6,0", "W": "1,1,6,0"}, cluster="c2")
    assert counted(ns).clusters == {"c1": ClusterCounts(3, 18, 10, 0), "c2": ClusterCounts(2, 3, 3, 0)}


@pytest.mark.parametrize(
    "change",
    [
        lambda ns: ns.register("b1", topics=("T", "U", "V"), version=2),
        lambda ns: ns.run(register_topic(ns.keys, "W", [QueueData("b1", 8, 8, 6, 0)], origin())),
        lambda ns: ns.run(delete_topic(ns.keys, "T", "", origin())),
        lambda ns: ns.run(wipe_write_perm(ns.keys, "b1", origin())),
        lambda ns: drained(ns, "b1"),
        lambda ns: ns.lapse(),
        lambda ns: ns.unregister("b1"),
        lambda ns: ns.register("b2", topics=("T", "V")),
    ],
    ids=["more topics", "217", "216", "205", "drain", "lapse", "unregistered", "another broker"],
)
def test_rows_are_read_again_once_something_has_changed(
    ns: Namespace, change: Callable[[Namespace], object]
) -> None:
    ns.register("b1", topics=("T", "U"))
    before = ns.run(topic_counts.count(ns.keys))
    counts, calls = read_with(ns, before)
    assert (counts.clusters, calls) == (before.counts.clusters, 0)
    change(ns)
    assert read_with(ns, before)[0].clusters == counted(ns).clusters != before.counts.clusters


def read_with(ns: Namespace, before: Counted) -> tuple[TopicCounts, int]:
    """Return the counts, and how many pages of rows were read for them."""
    plan, reply, pages = topic_counts.count(ns.keys, before), None, 0
    while True:
        try:
            request = plan.send(reply)
        except StopIteration as end:
            return end.value.counts, pages
        pages += isinstance(request, Call) and ns.keys.topics_of("b1") in request.args
        reply = ns.run(ask(request))


def test_there_is_nothing_to_count(ns: Namespace) -> None:
    counts = counted(ns)
    assert (counts.clusters, counts.wiped) == ({}, ())
    assert abs(counts.at_ms - ns.now_ms()) < 10_000


def is_drained(ns: Namespace) -> None:
    drained(ns, "b1")


def is_wiped(ns: Namespace) -> None:
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))


def has_a_slave_left(ns: Namespace) -> None:
    ns.register("b1", number=1, topics=("T", "U"))
    ns.unregister("b1")


def has_a_slave_that_acts(ns: Namespace) -> None:
    ns.register("b1", topics=("T", "U"), acting=True, version=2)
    ns.register("b1", number=1, topics=("T", "U"), acting=True, version=2)
    ns.unregister("b1")


def is_overdue(ns: Namespace) -> None:
    ns.lapse()


FAULTS = (is_drained, is_wiped, has_a_slave_left, has_a_slave_that_acts, is_overdue)


@pytest.mark.parametrize("fault", FAULTS)
def test_topics_of_which_the_only_broker_takes_no_messages(
    ns: Namespace, fault: Callable[[Namespace], None]
) -> None:
    ns.register("b1", topics=("T", "U"))
    assert without_writable_master(ns) == {"c1": 0}
    fault(ns)
    assert without_writable_master(ns) == {"c1": 2}
    ns.register("b2", topics=("T", "V"))
    assert without_writable_master(ns) == {"c1": 1}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_topic_that_is_read_only_by_wish_is_none(ns: Namespace, fault: Callable[[Namespace], None]) -> None:
    ns.register("b2", topics={"R": READ_ONLY, "T": "8,8,6,0", "U": "8,8,6,0"})
    ns.register("b1", topics=("T", "U"))
    fault(ns)
    assert without_writable_master(ns) == {"c1": 0}


def test_a_read_only_topic_of_a_drained_broker_is_none(ns: Namespace) -> None:
    ns.register("b1", topics={"R": READ_ONLY, "T": "8,8,6,0"})
    drained(ns, "b1")
    assert without_writable_master(ns) == {"c1": 1}


def test_a_broker_of_which_no_topic_has_write_permission_is_named(ns: Namespace) -> None:
    ns.register("b1", topics=("T", "U"))
    ns.register("b2", topics=("T", "U"))
    ns.register("b3", topics=())
    is_wiped(ns)
    assert counted(ns).wiped == ("b1",)


def test_rows_of_an_older_epoch_and_damaged_ones_are_in_no_count(ns: Namespace, redis: Store) -> None:
    ns.register("b1", topics=("T", "U"))
    redis.hset(ns.keys.topics_of("b1"), mapping={"Old": "0,8,8,6,0", "Odd": "1,8,eight,6,0", "None": "1,8"})
    assert counted(ns).clusters == {"c1": ClusterCounts(2, 16, 16, 0)}


def test_what_was_counted_is_kept_for_ten_minutes(ns: Namespace, redis: Store) -> None:
    assert ns.run(topic_counts.read(ns.keys)) is None
    counts = TopicCounts(1, {"c1": ClusterCounts(1, 2, 3, 4)}, ("b1",))
    ns.run(topic_counts.store(ns.keys, counts))
    assert ns.run(topic_counts.read(ns.keys)) == counts
    assert KEPT_MS - 60_000 < redis.pttl(ns.keys.topic_counts) <= KEPT_MS


@pytest.mark.parametrize("text", ["{", "{}", b"\xff"])
def test_damage_counts_as_absent(ns: Namespace, redis: Store, text: str | bytes) -> None:
    redis.set(ns.keys.topic_counts, text)
    assert ns.run(topic_counts.read(ns.keys)) is None


def test_counting_rests_between_pages(ns: Namespace) -> None:
    """Nine times as long as a page takes, so that others are served."""
    ns.register("b1", topics=[f"T{number}" for number in range(1000)])
    plan = topic_counts.count(ns.keys)
    pauses, reply = [], None
    while True:
        try:
            request = plan.send(reply)
        except StopIteration:
            break
        if isinstance(request, Pause):
            pauses.append(request.seconds)
            reply = None
        else:
            reply = ns.run(ask(request))
    assert len(pauses) >= 2
    assert all(0 < seconds < 5 for seconds in pauses)
