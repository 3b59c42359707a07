"""Name servers behind HAProxy, as docs/load-balancer.md describes it: what peers see, and what servers see of them."""

import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Final

import pytest
import redis as redis_py
from msgspec import Struct

from mqnamesrv.store import opened
from registry.keys import Keys, member_key
from registry.store.connect import connect
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.broker import A
from testbed.certificates import make_certificates
from testbed.connection import Connection
from testbed.eventually import PATIENCE_S, eventually, stays
from testbed.haproxy import IDLE_S, Balancer, Proxy
from testbed.ports import free_port
from testbed.process import Process
from testbed.properties import write_properties
from testbed.rocketmq.admin import COMMAND_S, MAIN, Admin
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import Release, dashed, release
from testbed.rocketmq.servers import NameServer, serve
from testbed.rocketmq.stage import Stage
from testbed.sockets import connected_from, peers
from tests.interop.lookups import PAUSE_S, Lookups
from tests.interop.together import work_together
from tests.interop.traffic import (
    await_consumed,
    end_consumer,
    end_producer,
    start_consumer,
    start_producer,
)

CLUSTER: Final = "balanced"
KEYS: Final = Keys("default")
DRAIN_S: Final = 6
HEARTBEAT_S: Final = 10
"""Between two registrations of a broker here: the shortest time that brokers take (RocketMQ BrokerController)."""
ALL_BACK_S: Final = 3.0 * HEARTBEAT_S
SHORT_S, LONG_S = 3, 25
"""Idle times of the balancer, to either side of that."""
AWAY_S: Final = 1.0
LOGGED: Final = ("-Dlog.level=INFO",)
END_S: Final = 40.0
SEEN_S: Final = 30.0


class Scene(Struct, frozen=True):
    """Two name servers on one store, the balancer before them, and a master of each release that knows only that."""

    stage: Stage
    url: str
    store: redis_py.Redis
    pods: list[NameServer]
    balancer: Balancer
    brokers: list[Broker]
    admin: Admin
    clients: Mapping[str, Clients]

    def make_topic(self, topic: str) -> None:
        """On both brokers, which tell the name server at once."""
        command = self.admin(self.balancer, "updateTopic", "-c", CLUSTER, "-t", topic, "-r", "4", "-w", "4")
        for broker in self.brokers:
            assert f"create topic to {broker.address} success." in command.out, command

    def events(self, kind: str) -> list[Any]:
        """What was recorded so far, of one kind."""
        entries: Any = self.store.xrange(KEYS.events)
        return [fields for _, fields in entries if fields["kind"] == kind]

    def removals(self, *brokers: Broker) -> list[str]:
        """Why these left; those that stay through all tests if none is named."""
        names = {broker.config.name for broker in brokers or self.brokers}
        return [event["cause"] for event in self.events("broker_removed") if event["broker"] in names]

    def restart_balancer(self, *, proxy: Proxy = "send-proxy-v2", idle_s: int = IDLE_S) -> None:
        """Cut all connections, and wait until each broker has come again."""
        self.balancer.stop()
        self.balancer.start(self.pods, proxy=proxy, idle_s=idle_s)
        eventually(lambda: all(self.connections(broker) for broker in self.brokers), ALL_BACK_S)

    def connections(self, broker: Broker) -> set[str]:
        """The broker's own ends of its connections to the balancer."""
        return connected_from(broker.process.pid, self.balancer.port)

    def marks(self, broker: Broker) -> int:
        """How many connections it has registered over, as the name servers see it."""
        fields: Any = self.store.hkeys(KEYS.member(member_key(broker.config.cluster, broker.address)))
        return sum(field.startswith("owner:") for field in fields)


def start_pod(stage: Stage, url: str, number: int, port: int) -> NameServer:
    """A name server at a place where one may have run before."""
    properties = {
        "redisUrl": url,
        "listenPort": str(port),
        "shutdownWaitTimeSeconds": str(DRAIN_S),
    }
    return serve(stage, "ours", properties, name=f"pod-{number}")


@pytest.fixture(scope="module")
def scene(stage: Stage, release_5: Release, release_4: Release) -> Iterator[Scene]:
    releases = (release_5, release_4)
    with opened("", stage.folder / "store") as url, connect(url) as store:
        pods = [start_pod(stage, url, number, free_port()) for number in range(2)]
        balancer = Balancer(stage, pods)
        configs = [BrokerConfig(of, f"balanced-{dashed(of.version)}", cluster=CLUSTER) for of in releases]
        brokers = start_brokers(stage, [balancer], configs)
        for config in configs:
            balancer.await_brokers(config.name, 0)
        clients = {of.version: Clients(stage, of, balancer, LOGGED) for of in releases}
        yield Scene(stage, url, store, pods, balancer, brokers, Admin(stage, release_4), clients)


@pytest.fixture
def topic(scene: Scene, request: pytest.FixtureRequest) -> str:
    """One of the test's own, which both brokers serve."""
    name = re.sub(r"\W+", "-", request.node.name)
    scene.make_topic(name)
    return name


@contextmanager
def traffic(scene: Scene, topic: str, *, away_s: float = PAUSE_S) -> Iterator[Process]:
    """A producer of 4.9.7, a consumer of 5.5.0 and lookups, through the balancer: at the end all that was sent has
    come, no send has failed (none is repeated by the client), and no lookup was wrong.

    `away_s` is for how long connections may be refused. Yields the consumer."""
    group = f"group-{topic}"
    consumer = start_consumer(scene.clients["5.5.0"], topic, group)
    producer = start_producer(scene.clients["4.9.7"], topic)
    with Lookups(scene.balancer, topic, len(scene.brokers), away_s=away_s) as lookups:
        yield consumer
    sent = end_producer(producer)
    await_consumed(scene.admin, scene.balancer, group)
    received = end_consumer(consumer)
    print(sent, received, f"lookups={lookups.count} reconnects={lookups.reconnects}")
    assert sent.sent
    assert sent.failures == 0
    assert received.all_keys() == set(range(sent.sent))
    assert lookups.count
    assert not lookups.wrong


@pytest.mark.parametrize("proxy", ["send-proxy-v2", "send-proxy", "no-send-proxy"])
def test_whom_the_servers_see(scene: Scene, topic: str, proxy: Proxy) -> None:
    """With PROXY headers of either version the peers themselves, in the events and in the log; else the balancer."""
    scene.restart_balancer(proxy=proxy)
    scene.make_topic(f"{topic}-more")
    changes = {event["broker"]: event["actor"] for event in scene.events("topics_changed")}
    balancer_s = set[str]().union(*(peers(pod.port) for pod in scene.pods))
    for broker in scene.brokers:
        seen = changes[broker.config.name].removeprefix("wire:")
        assert seen in (balancer_s if proxy == "no-send-proxy" else scene.connections(broker))
    with closing(Connection(scene.balancer.port)) as connection:
        connection.send(bytes.fromhex("7fffffff00000000"))
        assert connection.closed()
    logged = "".join(pod.process.printed() for pod in scene.pods)
    own = "{}:{}".format(*connection.local)
    assert (f" of {own} closed: " in logged) is (proxy != "no-send-proxy"), logged
    assert not scene.removals()


@pytest.mark.parametrize("version", ["5.5.0", "4.9.7"])
@pytest.mark.parametrize("where", ["environment", "property"])
def test_the_address_need_not_be_in_code_or_arguments(scene: Scene, version: str, where: str) -> None:
    options = ["-Dlog.level=OFF"]
    if where == "property":
        options += [f"-Drocketmq.namesrv.addr={scene.balancer.address}"]
    env = {"NAMESRV_ADDR": scene.balancer.address} if where == "environment" else {}
    name = f"no-address-{version}-{where}"
    asked = scene.stage.java(name, release(version), MAIN, "clusterList", options=options, env=env)
    asked.await_end(COMMAND_S)
    for broker in scene.brokers:
        assert f" {broker.address} " in asked.printed()


@pytest.mark.twice
def test_messages_go_on_while_the_balancer_is_restarted(scene: Scene, topic: str) -> None:
    with traffic(scene, topic, away_s=AWAY_S + PATIENCE_S):
        scene.balancer.stop()
        assert not peers(scene.balancer.port)
        time.sleep(AWAY_S)
        began = time.monotonic()
        scene.balancer.start(scene.pods)
        eventually(lambda: all(scene.connections(broker) for broker in scene.brokers), ALL_BACK_S)
        print(f"all brokers registered again {time.monotonic() - began:.1f} s later")
        eventually(lambda: [scene.marks(broker) for broker in scene.brokers] == [1, 1], SEEN_S)
    assert not scene.removals()


def test_an_idle_time_shorter_than_the_heartbeat_period_cuts_brokers_and_removes_none(
    scene: Scene, topic: str
) -> None:
    scene.restart_balancer(idle_s=SHORT_S)
    with traffic(scene, topic):
        before = scene.balancer.cuts()
        eventually(lambda: scene.balancer.cuts() >= before + 2 * len(scene.brokers), 5 * HEARTBEAT_S)
    assert not scene.removals()


def test_a_longer_one_cuts_no_broker(scene: Scene) -> None:
    scene.restart_balancer(idle_s=LONG_S)
    before = [scene.connections(broker) for broker in scene.brokers]
    stays(lambda: [scene.connections(broker) for broker in scene.brokers] == before, 2.5 * HEARTBEAT_S, 0.5)
    assert scene.balancer.cuts() == 0


@pytest.mark.parametrize("reachable", [True, False])
def test_brokers_cut_for_idleness_stay_if_the_name_server_reaches_them(scene: Scene, reachable: bool) -> None:
    impatient = Balancer(scene.stage, scene.pods, name=f"impatient-{reachable}", idle_s=SHORT_S)
    with socket.create_server(("127.0.0.1", 0)) as listening, closing(Connection(impatient.port)) as over:
        port = listening.getsockname()[1] if reachable else free_port()
        broker = A.but(name=f"reachable-{reachable}", addr=f"127.0.0.1:{port}")
        assert broker.register(over).code == 0
        assert over.closed(SHORT_S + SEEN_S)
        if reachable:
            stays(lambda: scene.balancer.brokers(broker.name), 2)
        else:
            eventually(lambda: not scene.balancer.brokers(broker.name), SEEN_S)
    impatient.stop()


@pytest.mark.twice
def test_name_servers_replaced_one_after_the_other(scene: Scene, topic: str) -> None:
    with traffic(scene, topic) as client_5:
        for number, pod in enumerate(scene.pods):
            assert peers(pod.port)
            began = time.monotonic()
            pod.process.ask_to_end(END_S)
            print(f"pod {number}: ended in {time.monotonic() - began:.1f} s")
            scene.pods[number] = start_pod(scene.stage, scene.url, number, pod.port)
            eventually(partial(peers, pod.port), SEEN_S)
    assert "Receive go away" in client_5.printed()
    assert not scene.removals()


def test_a_broker_with_two_addresses_is_there_while_one_of_them_is(scene: Scene, release_5: Release) -> None:
    other = Balancer(scene.stage, scene.pods, name="other-balancer")
    config = BrokerConfig(release_5, "twice", cluster="twice")
    (broker,) = start_brokers(scene.stage, [scene.balancer, other], [config])
    eventually(lambda: scene.marks(broker) == 2, ALL_BACK_S)
    other.stop()
    eventually(lambda: scene.marks(broker) == 1, SEEN_S)
    assert scene.balancer.brokers(config.name) == {0: broker.address}
    broker.shut_down()
    assert scene.removals(broker) == ["unregistered"]


def test_two_namespaces_behind_one_address_answer_by_turns(scene: Scene) -> None:
    """Why each release needs an address of its own."""
    pods = [
        serve(scene.stage, "ours", {"redisUrl": scene.url, "namespace": name}, name=f"namespace-{name}")
        for name in ("first", "second")
    ]
    mixed = Balancer(scene.stage, pods, name="mixed")
    with closing(Connection(mixed.port)) as one:
        assert A.register(one).code == 0
        with closing(Connection(mixed.port)) as other:  # at the pod with fewer connections
            codes = [
                over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TA"}).code for over in (one, other)
            ]
    assert codes == [ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST]
    for process in (mixed.process, *(pod.process for pod in pods)):
        process.ask_to_end(END_S)


@pytest.mark.parametrize("proxy", ["send-proxy-v2", "send-proxy"])
def test_headers_that_are_switched_off_close_the_connection(
    scene: Scene, plain_pod: NameServer, proxy: Proxy
) -> None:
    balancer = Balancer(scene.stage, [plain_pod], name=f"unwanted-{proxy}", proxy=proxy)
    with closing(Connection(balancer.port)) as connection:
        assert connection.closed()
    with closing(Connection(plain_pod.port)) as connection:
        assert connection.usable()
    balancer.stop()


@pytest.fixture(scope="module")
def plain_pod(scene: Scene) -> NameServer:
    """One that takes no PROXY headers."""
    properties = {"redisUrl": scene.url, "proxyProtocol": "false"}
    return serve(scene.stage, "ours", properties, name="plain-pod")


@pytest.mark.parametrize("version", ["5.5.0", "4.9.7"])
def test_tls_passes_through(scene: Scene, version: str) -> None:
    """With certificates demanded on both sides, behind a PROXY header."""
    certificates = make_certificates(scene.stage.folder / "certificates")
    properties = {"redisUrl": scene.url, "namespace": f"tls-{version}"}
    name = f"tls-{version}"
    behind = serve(scene.stage, "ours", properties, name=name, certificates=certificates)
    balancer = Balancer(scene.stage, [behind], name=f"{name}-balancer")
    path = write_properties(scene.stage.folder / name / "peers.properties", certificates.peer_properties())
    options = ("-Dtls.enable=true", f"-Dtls.config.file={path}")
    work_together(scene.stage, balancer, version, options, "behind-tls")
