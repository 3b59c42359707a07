"""`mqnamesrv size`: its arithmetic with costs of round numbers, its options, and the costs that it is shipped with."""

import json
import math

import pytest
from msgspec.structs import fields, replace

from mqnamesrv import cli, costs, size
from mqnamesrv.costs import Conditions, Costs, Cpu, Line
from mqnamesrv.size import Deployment, breaks_at, load_of, needs
from rocketmq_remoting.typed import converted

FREE = Line(0.0, 0.0, ((1.0, 0.0),))
NOTHING = Cpu(FREE, FREE, FREE)
SMALL = Deployment(30, 1_000, 900, brokers_per_topic=3, topics_per_client=1, changes_per_second=2.0)


def line(each: float, fixed: float = 0.0) -> Line:
    return Line(fixed, each, ((1.0, fixed + each), (1e9, fixed + 1e9 * each)))


def costing(**of: Cpu | Line | float) -> Costs:
    """Costs of nothing but these."""
    kinds = {Cpu: NOTHING, Line: FREE, float: 0.0, Conditions: Conditions("a machine", "versions", "today")}
    plain = {field.name: kinds[field.type] for field in fields(Costs)}
    return converted({**plain, **of}, Costs)


def worker(each: float, fixed: float = 0.0) -> Cpu:
    return Cpu(line(each, fixed), FREE, FREE)


def store(each: float, fixed: float = 0.0) -> Cpu:
    return Cpu(FREE, line(each, fixed), FREE)


def test_what_brokers_and_clients_ask() -> None:
    load = load_of(replace(SMALL, acting_masters=4, clients=600, topics_per_client=2))
    assert (load.registrations, load.changes, load.heartbeats) == (1.0, 2.0, 4.0)
    assert load.cluster_infos == 6.0
    assert load.lookups == 44.0  # 600 clients of two topics each 30 s, and 4 member groups
    assert (load.pairs, load.table, load.connections) == (3_000, 100, 630)


def test_changes_are_one_a_week_of_each_pair_unless_given() -> None:
    assert load_of(Deployment(10, 604_800, 1, brokers_per_topic=2)).changes == 2.0


def test_brokers_of_4x_ask_for_no_list() -> None:
    assert load_of(replace(SMALL, cluster_info_seconds=0)).cluster_infos == 0


@pytest.mark.parametrize(
    ("of", "used"),
    [
        ({"unchanged": worker(1_000.0, 200.0)}, 1 * 100_200),
        ({"change": worker(10.0)}, 2 * 1_000),
        ({"cluster_info": worker(10.0)}, 6 * 300),
        ({"lookup": worker(10.0)}, 30 * 30),
        ({"following": worker(10.0), "change": worker(10.0)}, 2 * (1_000 - 10) + 3 * 2 * 10),
        ({"idle": worker(1.0)}, 3 * 3_000),
    ],
)
def test_cpu_of_workers(of: dict[str, Cpu], used: float) -> None:
    """Of three; µs a second. The first is what they share, `following` and `idle` each has."""
    assert needs(replace(SMALL, workers=3), costing(**of)).worker_cpu == pytest.approx(used / 1e6)


@pytest.mark.parametrize(
    ("of", "used"),
    [
        ({"unchanged": store(1_000.0)}, 100_000),
        ({"change": store(10.0)}, 2_000),
        ({"following": store(10.0)}, 2 * 10 * 2),
        ({"resting": store(1_000.0)}, 2 * 1_000),
        ({"idle": store(1.0)}, 3_000),
    ],
)
def test_cpu_of_the_store(of: dict[str, Cpu], used: float) -> None:
    assert needs(replace(SMALL, workers=3), costing(**of)).store_cpu == pytest.approx(used / 1e6)


def test_changed_routes_are_read_again_by_workers_that_were_asked_for_them() -> None:
    """Of 1,000 topics the 300 clients of each of three workers know 26 %: 1 - e^-0.3."""
    found = needs(replace(SMALL, workers=3), costing(missed=Cpu(line(0.0, 100.0), line(0.0, 10.0), FREE)))
    known = 1 - math.exp(-0.3)
    assert found.worker_cpu == pytest.approx(3 * 2 * known * 100 / 1e6)
    assert found.store_cpu == pytest.approx(3 * 2 * known * 10 / 1e6)


def test_heartbeats_of_few_brokers_travel_alone() -> None:
    measured = Line(1_000.0, 10.0, ((100.0, 2_000.0), (1_000.0, 11_000.0)))
    assert size.batched(measured, 1_000, 1) == 11_000
    assert (
        size.batched(measured, 1_000, 50) == 20_000
    )  # 50 workers of 20 a second each: 20 µs each, as at 100


def test_walks_have_a_pace() -> None:
    measured = Line(100.0, 1.0, ((10.0, 110.0), (1_000.0, 1_100.0)))
    assert size.idle(measured, 500) == 600
    assert size.idle(measured, 4_000_000) == 1_100


def test_connections_decide_the_number_of_workers() -> None:
    found = needs(Deployment(10, 10, 180_000 - 10), costing())
    assert (found.workers, found.workers_for_connections, found.workers_for_cpu) == (10, 10, 1)


def test_cpu_decides_the_number_of_workers() -> None:
    """30,000 lookups a second of 100 µs are 3 cores; each worker has 0.6, and takes 0.1 itself."""
    of = Deployment(1, 100, 9_000, topics_per_client=100, brokers_per_topic=1, changes_per_second=0)
    found = needs(of, costing(lookup=worker(0.0, 100.0), idle=worker(0.0, 1e5)))
    assert (found.workers, found.workers_for_cpu) == (6, 6)


def test_one_worker_is_not_enough() -> None:
    assert needs(Deployment(1, 1, 0), costing()).workers == 2


def test_memory() -> None:
    found = needs(
        replace(SMALL, workers=3),
        costing(
            topic_store=line(100.0, 50.0),
            broker_store=line(1_000.0),
            event_bytes=line(0.0, 500.0),
            connection_worker=line(10.0, 1e6),
            connection_kernel=line(3.0),
            topic_worker=line(7.0),
        ),
    )
    tables = 1_000 * 350 + 30 * 1_000
    assert found.events_kept_s == 86_400  # 1,000 bytes a second: the day comes before 256 MB
    assert found.store_bytes == tables + 86_400 * 1_000
    assert found.store_limit_bytes == 2 * tables + 2 * (256 << 20)
    known = 1_000 * (1 - math.exp(-0.3))
    assert found.worker_bytes == pytest.approx(1e6 + 310 * 10 + known * 21)
    assert found.kernel_bytes == 930 * 3


def test_network() -> None:
    found = needs(
        SMALL, costing(route_bytes=line(100.0), cluster_info_bytes=line(10.0), registration_bytes=line(5.0))
    )
    assert found.sent == 30 * 300 + 6 * 300 + 250 * 3
    assert found.cluster_info_sent == 6 * 300
    assert found.received == 3 * 500 + 250 * 36


def test_events_and_pipeline() -> None:
    of = costing(events=line(0.0, 2.0), event_bytes=line(0.0, 1e6), landing=line(1e-3, 2.0))
    found = needs(SMALL, of)
    assert found.events_day == 2 * 2 * 86_400
    assert found.landing_cpu_s_day == pytest.approx(345.6 + 24 * 2)
    assert found.events_kept_s == (256 << 20) / 2e6


def test_the_stream_keeps_a_day_and_a_million_entries() -> None:
    """However many bytes it may have; a longer time needs fewer changes, not more memory."""
    assert needs(replace(SMALL, changes_per_second=0), costing()).events_kept_s == 86_400
    found = needs(replace(SMALL, changes_per_second=1_000), costing(events=line(0.0, 1.0)))
    assert found.events_kept_s == 1_000
    assert (found.limits[0].name, found.limits[0].share) == (size.EVENTS, 3.6)
    assert found.limits[0].cure == size.SOONER


def test_heartbeats_are_the_queries_that_brokers_send_by_default() -> None:
    of = replace(SMALL, acting_masters=10)
    found = needs(of, costing(version_query=Cpu(line(3.0), line(7.0), FREE), heartbeat=worker(1e6)))
    assert (found.worker_cpu, found.store_cpu) == pytest.approx((30 / 1e6, 70 / 1e6))


def test_workers_and_their_connections_may_be_given() -> None:
    of = Deployment(10, 10, 900 - 10, max_connections=100)
    assert needs(of, costing()).workers == 10
    given = needs(replace(of, workers=3), costing(idle=worker(0.0, 3e5)))
    shares = {limit.name: limit.share for limit in given.limits}
    assert given.workers == 3
    assert shares[size.CONNECTIONS] == pytest.approx(300 / 90)
    assert shares[size.WORKERS] == pytest.approx(0.3 / 0.6)


def test_the_fullest_comes_first() -> None:
    by_store = needs(SMALL, costing(unchanged=store(4_000.0), first=store(10.0)))
    assert by_store.limits[0].name == size.STORE_CPU
    assert by_store.limits[0].share == pytest.approx(0.4 / 0.6)
    assert [limit.share for limit in by_store.limits] == sorted(
        (limit.share for limit in by_store.limits), reverse=True
    )


@pytest.mark.parametrize(
    ("of", "name", "factor", "words"),
    [
        ({"unchanged": store(4_000.0)}, size.STORE_CPU, 1.5, "several namespaces"),
        ({"following": worker(50_000.0)}, size.FOLLOWERS, 3.0, "one entry for all changes of a moment"),
        ({"event_bytes": line(0.0, 1e8)}, size.STORE_NETWORK, None, "follow and read a replica"),
        ({"cluster_info_bytes": line(1e6)}, size.NETWORK, math.sqrt(0.75e9 / 1.8e8), "grow with the square"),
        ({"route_bytes": line(1e6)}, size.NETWORK, 0.75e9 / 9e7, "balancers"),
        ({"topic_store": line(1e6)}, size.STORE_MEMORY, (16e9 - 2 * (256 << 20)) / 6e9, "namespaces"),
        ({"first": store(1e4)}, size.REFILL, 1.0, "not emptied"),
    ],
)
def test_where_it_breaks(of: dict[str, Cpu | Line], name: str, factor: float | None, words: str) -> None:
    found, limit = breaks_at(SMALL, costing(**of))
    if factor is None:  # the stream is shorter than an hour first
        assert limit.name == size.EVENTS
        limit = next(limit for limit in needs(SMALL, costing(**of)).limits if limit.name == name)
    else:
        assert limit.name == name
        assert found == pytest.approx(factor, rel=0.08)  # brokers are whole
    assert words in limit.cure


def test_options_that_are_too_low() -> None:
    found = needs(Deployment(4_000, 600_000, 1, brokers_per_topic=4_000), costing(topic_worker=line(1e5)))
    assert dict(found.options) == {
        "maxBrokers": 6_000,
        "maxTopics": 900_000,
        "maxTopicsOfBroker": 900_000,
        "routeCacheBytes": math.ceil(1.2 * found.route_cache_bytes),
    }
    assert needs(SMALL, costing()).options == ()


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["size", "--brokers", "300", "--topics", "30,000", "--clients", "9_000"], {}) == 0
    printed = capsys.readouterr().out
    assert "10.0 registrations of 400 topics" in printed
    assert "remoting workers" in printed
    assert "Breaks first at " in printed
    assert costs.measured().conditions.machine in printed


def test_it_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    of = Deployment(300, 30_000, 9_000, acting_masters=7)
    counts = {"--brokers": "300", "--topics": "30000", "--clients": "9000", "--acting-masters": "7"}
    assert cli.run(["size", "--json", *(word for pair in counts.items() for word in pair)], {}) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["load"]["heartbeats"] == 7
    assert printed["workers"] == needs(of, costs.measured()).workers
    factor, limit = breaks_at(of, costs.measured())
    assert (printed["breaks_at"], printed["breaks_first"]["name"]) == (factor, limit.name)
    assert printed["conditions"]["machine"] == costs.measured().conditions.machine


def test_one_broker_without_clients(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["size", "--brokers", "1", "--topics", "1", "--clients", "0"], {}) == 0
    printed = capsys.readouterr().out
    assert "of which routes 0.00 GB" in printed
    assert "CPU needs 1, connections 1; two at least" in printed


def test_what_fits_at_no_size(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--brokers", "1", "--topics", "1", "--clients", "1", "--store-gb", "0.0001"]
    assert cli.run(["size", *words], {}) == 0
    assert "Fits at no size: memory of Redis" in capsys.readouterr().out


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["size", "--help"], {}) == 0
    printed = capsys.readouterr().out
    for name in Deployment.__struct_fields__:
        assert f"--{name.replace('_', '-')} N" in printed


RIGHT = {"--brokers": "10", "--topics": "10", "--clients": "10"}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"--brokers": "ten"}, "argument --brokers: 'ten' is not a whole number"),
        ({"--brokers": "0"}, "argument --brokers: 0 is not at least 1"),
        ({"--topics": "1.5"}, "argument --topics: '1.5' is not a whole number"),
        ({"--topics": "1,00"}, "argument --topics: '1,00' is not a whole number"),
        ({"--clients": "-1"}, "argument --clients: -1 is not at least 0"),
        ({"--clients": "2000000000"}, "argument --clients: 2000000000 is more than 1,000,000,000"),
        ({"--changes-per-second": "nan"}, "argument --changes-per-second: nan is not at least 0"),
        ({"--network-gbit": "0"}, "argument --network-gbit: 0 is not above 0"),
        ({"--acting-masters": "11"}, "argument --acting-masters: 11 are more than the 10 of --brokers"),
        ({"--brokers-per-topic": "11"}, "argument --brokers-per-topic: 11 are more than the 10 of --brokers"),
        ({"--topics-per-client": "11"}, "argument --topics-per-client: 11 are more than the 10 of --topics"),
        ({"--broker": "11"}, "unrecognized arguments: --broker=11"),
    ],
)
def test_a_wrong_option_is_named(
    wrong: dict[str, str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [f"{name}={value}" for name, value in {**RIGHT, **wrong}.items()]
    assert cli.run(["size", *arguments], {}) == 1
    assert capsys.readouterr().err.startswith(f"mqnamesrv size: {complaint}; ")


def test_missing_options_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["size", "--topics", "1"], {}) == 1
    assert "--brokers, --clients" in capsys.readouterr().err


def test_the_costs_that_are_shipped_were_measured() -> None:
    """Each cost has its three sizes, and a line that is near them."""
    for name in Costs.__struct_fields__:
        match getattr(costs.measured(), name):
            case Cpu() as used:
                assert len(used.worker.points) == len(used.store.points) == 3, name
                assert max(cost for _, cost in used.worker.points) > 0, name
            case Line() as one:
                assert len(one.points) >= 3, name
                for at, cost in one.points:
                    assert 0.3 * cost <= one.at(at) <= 3 * cost, name
