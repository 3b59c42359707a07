"""The fleet of agents, on a small scale and against the real server."""

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from bench.agents import Outcome, Use, brokers
from bench.fleet import Fleet
from mqns.name_server.client import AsyncNameServerClient
from testbed.nameserver import ONE_WORKER, NameServer

AGENTS, TOPICS = 12, 5


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = NameServer(tmp_path_factory.mktemp("server"), ONE_WORKER).start()
    yield f"127.0.0.1:{server.port}"
    server.stop()


@pytest.mark.parametrize("release", ["5.5.0", "4.9.7"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_fleet_is_announced_and_leaves(address: str, shared: bool, release: str) -> None:
    async def play() -> None:
        configs = list(brokers(AGENTS, TOPICS, address, release))
        async with AsyncNameServerClient(address) as ns:
            async with Fleet(configs, start_within_s=0.1, shared=shared) as fleet:
                assert (fleet.counts, fleet.failures) == (Counter(Registered=AGENTS), Counter())
                table = (await ns.get_cluster_info()).cluster_addr_table
                assert {name: len(members) for name, members in table.items()} == {
                    "fleet-000": 10,
                    "fleet-001": 2,
                }
                route = await ns.get_route("fleet-001_topic_0004")
                assert route
                assert len(route.queue_datas) == 2
            assert fleet.counts["Unregistered"] == AGENTS
            assert (await ns.get_cluster_info()).broker_addr_table == {}

    asyncio.run(play())


def test_failures_are_counted_by_request_and_error() -> None:
    async def play() -> None:
        async with Fleet(list(brokers(2, 2, "127.0.0.1:1")), start_within_s=0) as fleet:
            assert fleet.failures == Counter({"REGISTER_BROKER: ConnectError": 2})

    asyncio.run(play())


def test_what_is_printed() -> None:
    uses = Use(1.0, 50_000_000), Use(4.0, 100_000_000)
    lines = list(Outcome(60.0, uses, None, 20, Counter(), 0.5).lines(10))
    assert lines[0] == "20 registrations in 60 s (20 were due)"
    assert lines[-1] == "| agents | 5.0% | 100 MB | 10000 kB |"
