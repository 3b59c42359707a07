"""Rounds of the mirror against name servers whose answers are set."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from mqns.errors import ConfigError
from mqns.mirror.groups import groups_of
from mqns.mirror.mirror import Mirror
from mqns.mirror.rounds import Round
from mqns.mirror.source import AGAIN_S, GRACE_S
from mqns.mirror.target import MirroredMember
from mqns.mirror.topic_table import TooManyRows, TopicTable
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.route import BrokerData, QueueData, TopicRouteData
from testbed.virtual_time import now, run
from tests.mqns.mirror.scripted import Java, Ours

A = MirroredMember("c1", "a", 0, "10.0.1.1:10097")
EVERY_S = 10.0
Play = Callable[[], Awaitable[None]]


def a_java(address: str = "10.0.0.1:9876") -> Java:
    """Return one with a master and its slave, which have two topics."""
    java = Java(address)
    java.has("a", 0, 1)
    java.topics = {"T1": {"a": 6}, "T2": {"a": 4}}
    return java


def mirror(
    ours: Ours, *javas: Java, grace_s: float = 0.0, rate: float = 1000.0, kv: Sequence[str] = ()
) -> Mirror:
    return Mirror([java.source(grace_s=grace_s, rate=rate) for java in javas], ours, kv)


async def later(kept: Mirror, *, s: float = 0.0) -> Round:
    """Make a round after so many seconds, with the time of one."""
    await asyncio.sleep(s)
    return await kept.round(EVERY_S)


def test_brokers_and_their_topics_are_registered_and_then_only_renewed() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        first = await later(kept)
        assert ours.addresses("a") == {0: "10.0.1.1:10097", 1: "10.0.1.2:10097"}
        assert ours.perms("a") == {"T1": 6, "T2": 4}
        assert ours.written() == ["register a/0 2", "register a/1 0"]
        assert (first.mirrored, first.is_whole, len(first.registered)) == (2, True, 2)
        again = await later(kept, s=EVERY_S)
        assert ours.written() == []
        assert (again.renewed, again.changes) == (2, False)

    run(play())


def test_nothing_is_registered_before_all_its_topics_are_read() -> None:
    """What a mirror that was just started has not read would be deleted."""

    async def play() -> None:
        java, ours = a_java(), Ours()
        java.topics |= {f"T{number}": {"a": 6} for number in range(3, 40)}
        await mirror(ours, java).round()
        kept = mirror(ours, java, rate=1.0)
        ours.written()
        for _ in range(3):
            done = await later(kept)
            assert (ours.written(), done.reading, done.renewed) == ([], ("a",), 2)
        while (await later(kept)).reading:
            assert ours.written() == []
        assert ours.written() == ["register a/0 39", "register a/1 0"]

    run(play())


@pytest.mark.parametrize("code", [RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.GET_TOPICS_BY_CLUSTER])
def test_topics_stay_as_they_are_while_they_cannot_be_read(code: RequestCode) -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        await mirror(ours, java).round()
        ours.written()
        java.refusals[code] = ResponseCode.SYSTEM_ERROR
        java.refusals[RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER] = ResponseCode.SYSTEM_ERROR
        kept = mirror(ours, java)
        for _ in range(3):
            done = await later(kept, s=EVERY_S)
            assert "its topics are not read" in str(done.sources[java.address])
            assert (ours.written(), done.renewed, done.is_whole) == ([], 2, False)
        assert ours.perms("a") == {"T1": 6, "T2": 4}

    run(play())


def test_the_lists_of_clusters_do_where_that_of_all_topics_is_off() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.refusals[RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER] = ResponseCode.SYSTEM_ERROR
        assert (await later(mirror(ours, java))).is_whole
        assert ours.perms("a") == {"T1": 6, "T2": 4}

    run(play())


def test_new_topics_come_at_once_and_others_when_they_are_read_again() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        await later(kept)
        java.routes_asked()
        java.topics["T1"] = {"a": 4}
        java.topics["T3"] = {"a": 6}
        del java.topics["T2"]
        await later(kept, s=1)
        assert java.routes_asked() == ["T3"]
        assert ours.perms("a") == {"T1": 6, "T3": 6}
        await later(kept, s=AGAIN_S + 1)
        assert sorted(java.routes_asked()) == ["T1", "T3"]
        assert ours.perms("a") == {"T1": 4, "T3": 6}

    run(play())


def test_routes_are_asked_for_no_oftener_than_the_rate() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.topics = {f"T{number}": {"a": 6} for number in range(1000)}
        kept = mirror(ours, java, rate=20.0)
        began = now()
        await later(kept)
        assert now() - began <= EVERY_S + 1
        assert len(java.routes_asked()) <= 20 * EVERY_S + 1
        await later(kept)
        assert 20 * EVERY_S - 5 <= len(java.routes_asked()) <= 20 * EVERY_S + 1

    run(play())


def test_no_request_that_changes_a_lease_or_anything_else_is_sent() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java, kv=("ORDER_TOPIC_CONFIG",))
        for _ in range(10):
            await later(kept, s=EVERY_S)
        assert {code for code, _ in java.asked} == {
            RequestCode.GET_BROKER_CLUSTER_INFO,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            RequestCode.GET_KVLIST_BY_NAMESPACE,
        }

    run(play())


def test_what_java_drops_is_removed_in_the_next_round() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.has("b", 0)
        kept = mirror(ours, java)
        await later(kept)
        ours.written()
        del java.brokers["b"]
        done = await later(kept, s=EVERY_S)
        assert ours.written() == ["remove b/0"]
        assert [member.broker_name for member in done.removed] == ["b"]

    run(play())


def test_a_server_that_was_started_again_removes_nothing_until_brokers_had_time_to_register() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java, grace_s=GRACE_S)
        await later(kept, s=EVERY_S)
        ours.written()
        java.restart()
        done = await later(kept, s=EVERY_S)
        assert (ours.written(), done.renewed) == ([], 0)
        java.has("a", 0)
        java.topics = {"T1": {"a": 6}, "T2": {"a": 4}}
        await later(kept, s=EVERY_S)
        assert "remove" not in str(ours.written())
        assert ours.perms("a") == {"T1": 6, "T2": 4}
        await later(kept, s=GRACE_S)
        assert ours.written() == ["remove a/1"]

    run(play())


def test_a_server_that_starts_again_within_a_round_takes_no_topics() -> None:
    """It has the list of brokers from before, and the topics of none."""

    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        await later(kept)
        ours.written()
        source = kept._sources[0]
        look = source.look

        async def look_and_restart() -> None:
            await look()
            java.connects += 1
            java.topics = {}

        source.look = look_and_restart  # type: ignore[method-assign]
        done = await later(kept, s=AGAIN_S)
        assert ours.written() == []
        assert "made again" in str(done.sources[java.address])

    run(play())


def test_a_server_that_does_not_answer_renews_nothing_and_removes_nothing() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        await later(kept)
        ours.written()
        java.down = True
        done = await later(kept, s=EVERY_S)
        assert (ours.written(), done.renewed, done.is_whole) == ([], 0, False)
        assert done.sources == {java.address: "not connected"}
        java.down = False
        assert (await later(kept, s=EVERY_S)).renewed == 2

    run(play())


@pytest.mark.parametrize("others", [0, 1])
def test_a_source_that_is_the_target_is_refused_before_anything_is_written(others: int) -> None:
    async def play() -> None:
        ours, target = Ours(), a_java("10.0.0.9:9876")
        target.started = ours.started
        kept = mirror(ours, *[a_java()] * others, target)
        with pytest.raises(ConfigError, match=r"10\.0\.0\.9:9876: it is the name server that is written to"):
            await later(kept)
        assert (ours.written(), ours.members) == ([], {})

    run(play())


def test_a_source_that_becomes_the_target_fails_and_renews_nothing() -> None:
    """As where its address was turned over to the new name server; another source goes on."""

    async def play() -> None:
        turned, stays, ours = a_java(), Java("10.0.0.2:9876"), Ours()
        stays.has("b", 0)
        kept = mirror(ours, turned, stays)
        assert (await later(kept)).renewed == 0
        assert (await later(kept, s=EVERY_S)).renewed == 3
        ours.written()
        turned.started = ours.started
        done = await later(kept, s=EVERY_S)
        assert (ours.written(), done.renewed, done.is_whole) == ([], 1, False)
        assert "name server that is written to" in str(done.sources[turned.address])
        turned.started = None
        assert (await later(kept, s=EVERY_S)).renewed == 3

    run(play())


def test_a_redis_namesrv_of_another_store_is_a_source_as_others() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.started = "1795255834513"
        kept = mirror(ours, java)
        assert len((await later(kept)).registered) == 2
        java.started = None  # of an earlier release
        assert (await later(kept, s=EVERY_S)).renewed == 2

    run(play())


def test_nothing_is_written_while_the_target_does_not_say_which_it_is() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.started, ours.down = ours.started, True
        done = await later(mirror(ours, java))
        assert (done.failures, done.target_answered) == (("http://ours: no answer",), False)

    run(play())


def test_what_another_process_says_of_its_start_does_not_count() -> None:
    """The connection was made again between the brokers and the start of the service."""

    async def play() -> None:
        java, ours = a_java(), Ours()

        async def reconnects() -> None:
            java.connects += 1

        java.service_start = reconnects  # type: ignore[method-assign]
        done = await later(mirror(ours, java))
        assert (ours.written(), done.sources) == ([], {java.address: "the connection was made again"})

    run(play())


def test_a_broker_is_there_if_any_server_has_it() -> None:
    async def play() -> None:
        first, second, ours = a_java(), a_java("10.0.0.2:9876"), Ours()
        second.has("b", 0)
        second.topics["T9"] = {"b": 6}
        kept = mirror(ours, first, second)
        await later(kept)
        assert ours.perms("b") == {"T9": 6}
        assert [what for _, what in second.asked if what.startswith("T")].count("T1") == 1
        first.down = True
        del second.brokers["b"]
        done = await later(kept, s=EVERY_S)
        assert (done.removed, done.renewed) == ((), 2)  # the first might have it
        first.down = False
        assert [member.broker_name for member in (await later(kept, s=EVERY_S)).removed] == ["b"]

    run(play())


def test_the_second_server_takes_over_where_the_first_fails() -> None:
    async def play() -> None:
        first, second, ours = a_java(), a_java("10.0.0.2:9876"), Ours()
        kept = mirror(ours, first, second)
        await later(kept)
        assert second.routes_asked() == []  # those of the first will do
        first.down = True
        second.topics["T3"] = {"a": 6}
        await later(kept, s=EVERY_S)
        assert ours.perms("a") == {"T1": 6, "T2": 4, "T3": 6}

    run(play())


def test_a_broker_that_registered_itself_is_left_alone_as_long_as_it_is_so() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        await later(kept)
        ours.written()
        ours.register_itself(A)
        java.topics["T3"] = {"a": 6}
        done = await later(kept, s=EVERY_S)
        assert (done.own, done.mirrored, done.registered_themselves) == ((A,), 1, 1)
        assert ours.written() == []
        assert (await later(kept, s=EVERY_S)).own == ()
        java.brokers["a"].broker_addrs.pop(0)
        await later(kept, s=EVERY_S)
        assert "remove a/0" not in ours.written()
        java.has("a", 0, 1)
        ours.own.clear()
        await later(kept, s=EVERY_S)
        assert "register a/0 3" in ours.written()

    run(play())


def test_an_own_registration_between_the_look_and_the_write_wins() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        renew = ours.renew

        async def renew_before(members: Sequence[MirroredMember]) -> Sequence[str]:
            states = await renew(members)
            ours.register_itself(A)
            return states

        ours.renew = renew_before  # type: ignore[method-assign]
        done = await later(kept)
        assert A not in ours.members
        assert (done.own, done.failures) == ((A,), ())

    run(play())


def test_a_target_that_lost_all_is_filled_again() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        await later(kept)
        ours.down = True
        done = await later(kept, s=EVERY_S)
        assert done.failures == ("http://ours: no answer",)
        ours.down = False
        ours.members.clear()
        await later(kept, s=EVERY_S)
        assert ours.perms("a") == {"T1": 6, "T2": 4}

    run(play())


def test_a_mirror_that_starts_again_goes_on_where_the_last_one_ended() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.has("b", 0)
        await later(mirror(ours, java))
        del java.brokers["b"]
        ours.written()
        done = await later(mirror(ours, java))
        assert [member.broker_name for member in done.removed] == ["b"]
        assert (done.registered, done.changed, done.renewed) == ((), (), 2)

    run(play())


def test_two_mirrors_of_the_same_servers_change_nothing_of_each_other() -> None:
    async def play() -> None:
        first, second, ours = a_java(), a_java("10.0.0.2:9876"), Ours()
        one, other = mirror(ours, first, second), mirror(ours, second, first)
        assert one.mark == other.mark == "10.0.0.1:9876;10.0.0.2:9876"
        await later(one)
        assert not (await later(other)).changes
        assert not (await later(one, s=EVERY_S)).changes

    run(play())


def test_a_moved_broker_is_registered_before_its_old_address_is_removed() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        await later(kept)
        java.has("a", 0, 1, at="10.0.9")
        ours.written()
        await later(kept, s=EVERY_S)
        assert ours.written()[0] == "register a/0 2"
        assert ours.addresses("a") == {0: "10.0.9.1:10097", 1: "10.0.9.2:10097"}

    run(play())


def test_a_group_without_master_has_its_topics_by_the_smallest_slave() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.has("a", 1, 2, acting=True)
        await later(mirror(ours, java))
        assert ours.written() == ["register a/1 2", "register a/2 0"]
        assert all(body.enable_acting_master for body in ours.members.values())

    run(play())


def test_what_is_refused_is_reported_and_keeps_nothing_else() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.has("b", 0)
        ours.refuses.add("a")
        done = await later(mirror(ours, java))
        assert ours.addresses("b") == {0: "10.0.1.1:10098"}
        assert done.failures[0] == "a at 10.0.1.1:10097: more than maxTopics"
        assert not done.is_whole

    run(play())


def test_static_topics_and_those_that_are_none_here_are_left_out_and_counted() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.static.add("T1")
        java.topics |= {"a b": {"a": 6}, "n" * 256: {"a": 6}, "perm": {"a": 16}, "%RETRY%g": {"a": 6}}
        assert (await later(mirror(ours, java))).topics_left_out == 4
        assert ours.perms("a") == {"T2": 4, "%RETRY%g": 6}

    run(play())


def test_an_unreadable_route_keeps_no_other_topic() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        kept = mirror(ours, java)
        await later(kept)
        java.refusals[RequestCode.GET_ROUTEINFO_BY_TOPIC] = ResponseCode.SUCCESS  # a body that is none
        done = await later(kept, s=AGAIN_S)
        assert "unreadable" not in str(done.failures)
        assert "topic 'T" in str(done.sources[java.address])
        assert ours.perms("a") == {"T1": 6, "T2": 4}

    run(play())


def test_kv_follows_what_changes_and_leaves_other_keys() -> None:
    async def play() -> None:
        java, ours = a_java(), Ours()
        java.kv["o"] = {"T1": "a:4", "T2": "a:4"}
        ours.kv["o", "mine"] = "b:4"
        kept = mirror(ours, java, kv=("o", "absent"))
        assert (await later(kept)).kv == ("o/T1", "o/T2")
        java.kv["o"] = {"T1": "a:8"}
        assert (await later(kept, s=EVERY_S)).kv == ("o/T1", "o/T2")
        assert ours.kv == {("o", "T1"): "a:8", ("o", "mine"): "b:4"}
        ours.kv["o", "T1"] = "changed here"
        assert (await later(kept, s=EVERY_S)).kv == ()
        java.refusals[RequestCode.GET_KVLIST_BY_NAMESPACE] = ResponseCode.SYSTEM_ERROR
        assert "KV namespace 'o'" in str((await later(kept, s=EVERY_S)).sources[java.address])

    run(play())


def test_a_table_has_a_bound() -> None:
    table = TopicTable(rows_most=2)
    table.list(["T1", "T2"], 1.0)
    two = (QueueData("a", 4, 4, 6, 0), QueueData("b", 4, 4, 6, 0))
    table.put("T1", TopicRouteData((), two), 1.0)
    table.put("T1", TopicRouteData((), two), 2.0)
    with pytest.raises(TooManyRows, match="more than 2 pairs"):
        table.put("T2", TopicRouteData((), two[:1]), 2.0)


def test_an_address_that_changed_its_id_is_there_once() -> None:
    """The second name server has not seen it yet."""
    first, second = a_java(), a_java("10.0.0.2:9876")
    first.brokers["a"] = BrokerData("c1", "a", {0: "10.0.1.2:10097"})
    groups = groups_of([first, second])
    assert {member.broker_id: member.broker_addr for member in groups["a"].members} == {0: "10.0.1.2:10097"}
