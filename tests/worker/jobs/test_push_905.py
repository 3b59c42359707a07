"""905: which groups of events are pushed to which brokers, and that one of several pushers does it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from mqnamesrv.store import EmbeddedStore
from registry.drivers import AsyncDriver
from registry.events.entry import Event, EventId
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.store import connect as stores
from rocketmq_remoting.command import Command
from rocketmq_remoting.frame import FrameReader
from testbed.eventually import eventually_async
from tests.worker.scene import Broker, asynchronous, serving
from worker.background import end
from worker.jobs.group_events import GroupEvents
from worker.jobs.push_905 import SENDS_MOST, Pusher, changes
from worker.outgoing import Endpoint

KEYS = Keys("default")


def entry(kind: str, cause: str, id: int, addr: str, addrs: dict[str, str], **fields: str) -> Event:
    given = {
        "broker": "b",
        "id": str(id),
        "addr": addr,
        "addrs": json.dumps(addrs),
        "ha": "ha-" + addr,
        **fields,
    }
    return Event(EventId(1), {"kind": "broker_" + kind, "cause": cause, **given})


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param(
            [entry("registered", "join", 0, "m", {"0": "m", "1": "s1", "2": "s2"})],
            ({"minBrokerId": "0", "minBrokerAddr": "m", "haBrokerAddr": "ha-m"}, ("s1", "s2")),
            id="a-master-joins",
        ),
        pytest.param([entry("registered", "join", 2, "s2", {"0": "m", "2": "s2"})], None, id="a-slave-joins"),
        pytest.param([entry("registered", "first", 1, "s1", {"1": "s1"})], None, id="an-empty-group"),
        pytest.param(
            [entry("removed", "unregistered", 0, "m", {"1": "s1", "2": "s2"})],
            ({"minBrokerId": "1", "minBrokerAddr": "s1", "offlineBrokerAddr": "m"}, ("s1", "s2")),
            id="the-smallest-leaves",
        ),
        pytest.param([entry("removed", "expired", 2, "s2", {"0": "m"})], None, id="another-leaves"),
        pytest.param([entry("removed", "lost", 0, "m", {})], None, id="the-last-leaves"),
        pytest.param(
            [
                entry("removed", "expired", 0, "m", {"1": "s1", "2": "s2"}),
                entry("removed", "expired", 1, "s1", {"2": "s2"}),
            ],
            ({"minBrokerId": "2", "minBrokerAddr": "s2", "offlineBrokerAddr": "m"}, ("s2",)),
            id="two-leave-at-once",
        ),
        pytest.param(
            [
                entry("removed", "switched", 1, "s1", {}),
                entry("registered", "switch", 0, "s1", {"0": "s1"}),
            ],
            ({"minBrokerId": "0", "minBrokerAddr": "s1", "haBrokerAddr": "ha-s1"}, ("s1",)),
            id="a-lone-slave-becomes-master",
        ),
        pytest.param(
            [
                entry("removed", "expired", 0, "m", {"1": "s1"}),
                entry("registered", "revive", 0, "m", {"0": "m", "1": "s1"}),
            ],
            None,
            id="back-in-the-same-script",
        ),
        pytest.param(
            [
                entry("removed", "replaced", 0, "m", {"1": "s1"}),
                entry("registered", "takeover", 0, "n", {"0": "n", "1": "s1"}),
            ],
            None,
            id="taken-over",
        ),
        pytest.param(
            [entry("removed", "expired", 1, "s1", {}), entry("registered", "first", 0, "m", {"0": "m"})],
            None,
            id="a-group-that-had-lapsed",
        ),
    ],
)
def test_a_smaller_or_a_missing_smallest_id_is_pushed(
    group: list[Event], expected: tuple[dict[str, str], tuple[str, ...]] | None
) -> None:
    found = [(change.ext(), change.receivers()) for change in changes(group)]
    assert found == ([] if expected is None else [expected])


class Listening:
    """A broker's own port, and the requests that came."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while received := await reader.read(4096):
            frames.feed(received)
            while (request := frames.next_command()) is not None:
                self.requests.append(request)
        writer.close()

    @property
    def pushed(self) -> list[dict[str, str] | None]:
        return [request.ext for request in self.requests]


@asynccontextmanager
async def listening(count: int, *hosts: str) -> AsyncIterator[list[Listening]]:
    """So many ports, on these hosts if any are given."""
    ports = [Listening() for _ in range(count)]
    hosts = hosts or ("127.0.0.1",) * count
    servers = [
        await asyncio.start_server(port.serve, host, 0) for port, host in zip(ports, hosts, strict=True)
    ]
    for port, host, server in zip(ports, hosts, servers, strict=True):
        port.address = f"{host}:{server.sockets[0].getsockname()[1]}"
    try:
        yield ports
    finally:
        for server in servers:
            server.close()


@asynccontextmanager
async def pushing(url: str, replicas: int = 2, **options: Any) -> AsyncIterator[None]:
    given = Options(redis_url=url, **options)
    drivers = [AsyncDriver(stores.connect_async(url)) for _ in range(replicas)]
    readers = [
        GroupEvents(partial(stores.connect_follower, url), KEYS, Pusher(given, driver, KEYS).apply)
        for driver in drivers
    ]
    tasks = [asyncio.ensure_future(reader.run()) for reader in readers]
    for reader in readers:
        assert await reader.following(3)
    try:
        yield
    finally:
        await end(tasks)
        for driver in drivers:
            await driver.close()


@pytest.mark.parametrize("acts", [pytest.param(True, id="acting"), pytest.param(False, id="not-acting")])
@asynchronous
async def test_a_group_is_pushed_to_once_by_two_pushers(store: EmbeddedStore, acts: bool) -> None:
    ext = {"enableActingMaster": "true"} if acts else {}
    async with (
        listening(3) as ports,
        serving(store.url) as scene,
        pushing(store.url, notify_min_broker_id_changed=True),
    ):
        brokers = [Broker("b", port.address, id=number) for number, port in enumerate(ports)]
        for broker in (brokers[1], brokers[2]):
            await scene.register(broker, ext=ext)
        await scene.register(brokers[0], ext=ext)
        await eventually_async(lambda: all(ports[number].requests for number in (1, 2)))
        newcomer = {
            "minBrokerId": "0",
            "minBrokerAddr": ports[0].address,
            "haBrokerAddr": brokers[0].ext["haServerAddr"],
        }
        assert [port.pushed for port in ports] == [[], [newcomer], [newcomer]]
        request = ports[1].requests[0]
        assert (request.code, request.flag, request.opaque) == (905, 2, ports[2].requests[0].opaque)
        await scene.ask(104, b"", brokers[0].ext)
        if acts:
            await eventually_async(lambda: all(port.pushed[1:] for port in ports[1:3]))
        else:
            await asyncio.sleep(0.2)
        offline = {
            "minBrokerId": "1",
            "minBrokerAddr": ports[1].address,
            "offlineBrokerAddr": ports[0].address,
        }
        assert ports[1].pushed[1:] == ([offline] if acts else [])
        assert ports[2].pushed[1:] == ([offline] if acts else [])


@asynchronous
async def test_nothing_is_pushed_unless_the_option_is_on_and_it_may_be_set_later(
    store: EmbeddedStore,
) -> None:
    async with listening(3) as ports, serving(store.url) as scene, pushing(store.url, replicas=1):
        await scene.register(Broker("b", ports[2].address, id=2))
        await scene.register(Broker("b", ports[1].address, id=1))
        await asyncio.sleep(0.1)
        assert ports[2].requests == []
        await scene.ask(318, b"notifyMinBrokerIdChanged=true")
        await scene.register(Broker("b", ports[0].address, id=0))
        await eventually_async(lambda: len(ports[2].requests) == 1)


@asynchronous
async def test_a_broker_that_cannot_be_reached_delays_no_others(store: EmbeddedStore) -> None:
    options = {"notify_min_broker_id_changed": True}
    async with (
        listening(1) as [port],
        serving(store.url) as scene,
        pushing(store.url, replicas=1, **options),
    ):
        await scene.register(Broker("b", "127.0.0.1:1", id=1))
        await scene.register(Broker("b", port.address, id=2))
        answer = await asyncio.wait_for(scene.register(Broker("b", "127.0.0.1:2", id=0)), 2)
        assert answer.code == 0
        await eventually_async(lambda: len(port.requests) == 1)


@asynchronous
async def test_only_brokers_that_came_from_their_address_or_a_listed_network_are_pushed_to(
    store: EmbeddedStore,
) -> None:
    on = {"notify_min_broker_id_changed": True, "probe_networks": "127.10.0.0/16"}
    async with (
        listening(3, "127.10.0.5", "127.11.0.5", "127.0.0.1") as ports,
        serving(store.url) as scene,
        pushing(store.url, replicas=1, **on),
    ):
        for number, port in enumerate(ports, 1):
            await scene.register(Broker("b", port.address, id=number))
        await scene.register(Broker("b", f"localhost:{ports[2].address[10:]}", id=4))
        await scene.register(Broker("b", "127.0.0.1:2", id=0))
        await eventually_async(lambda: ports[0].requests and ports[2].requests)
        await asyncio.sleep(0.1)
        assert [len(port.requests) for port in ports] == [1, 0, 1]


@asynchronous
async def test_a_push_reaches_sixteen_brokers_of_a_group(store: EmbeddedStore) -> None:
    async with (
        listening(20) as ports,
        serving(store.url) as scene,
        pushing(store.url, replicas=1, notify_min_broker_id_changed=True),
    ):
        for number, port in enumerate(ports, 1):
            await scene.register(Broker("b", port.address, id=number))
        await scene.register(Broker("b", "127.0.0.1:2", id=0))
        await eventually_async(lambda: sum(len(port.requests) for port in ports) >= 16)
        await asyncio.sleep(0.1)
        assert [len(port.requests) for port in ports] == [1] * 16 + [0] * 4


@asynchronous
async def test_no_host_takes_the_files_of_this_process(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group whose smallest id goes and comes has a push to each of the others, each time."""
    under_way: dict[str, int] = {"127.0.0.1": 0, "127.10.0.5": 0}
    over = asyncio.Event()

    async def stalled(to: Endpoint, frame: bytes) -> None:
        under_way[to[0]] += 1
        await over.wait()

    monkeypatch.setattr("worker.jobs.push_905.send", stalled)
    on = {"notify_min_broker_id_changed": True, "probe_networks": "127.10.0.0/16"}
    async with serving(store.url) as scene, pushing(store.url, replicas=1, **on):
        for number in range(1, 11):
            await scene.register(Broker("b", f"127.0.0.1:{number}", id=number))
        await scene.register(Broker("b", "127.10.0.5:1", id=20))
        for _ in range(10):
            await scene.register(Broker("b", "127.0.0.1:99", id=0))
            await scene.ask(104, b"", Broker("b", "127.0.0.1:99", id=0).ext)
        await eventually_async(lambda: under_way["127.10.0.5"] == 10)
        assert under_way["127.0.0.1"] == SENDS_MOST
        over.set()
