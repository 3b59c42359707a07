"""Agents and the real name server, over real sockets."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqns.broker import (
    AsyncBrokerAgent,
    BrokerAgent,
    BrokerConfig,
    Failed,
    MinBrokerIdChanged,
    Registered,
    TopicSettings,
)
from mqns.broker.agent import options_for
from mqns.errors import AddressError, ConnectionClosed
from mqns.name_server.calls import BrokerIdentity
from mqns.name_server.client import AsyncNameServerClient
from mqns.name_server.client import NameServerClient as Client
from mqns.remoting.remoting_client import AsyncRemotingClient
from rocketmq_remoting.topic_config import TopicConfig
from testbed.eventually import eventually
from testbed.nameserver import ONE_WORKER, NameServer
from testbed.ports import free_port
from tests.mqns.broker.scene import RecordingListener

HOST = "127.0.0.1"
TOPICS = (TopicSettings(topic_name="TA"), TopicSettings(topic_name="TB", read_queue_nums=4, perm=4))
PROGRAM = "import sys; from pathlib import Path; from mqns.broker import read_config, run_agent; "
PROGRAM += "run_agent(read_config(Path(sys.argv[1])), listener=lambda event: print(event, flush=True))"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    """It pushes 905, and has slaves act."""
    options = {"notifyMinBrokerIdChanged": "true", "supportActingMaster": "true", **ONE_WORKER}
    server = NameServer(tmp_path_factory.mktemp("server"), options).start()
    yield server
    server.stop()


@pytest.fixture
def ns(server: NameServer) -> Iterator[Client]:
    """What its clients see."""
    with Client(f"{HOST}:{server.port}") as client:
        yield client


def broker(server: NameServer, name: str, **more: object) -> BrokerConfig:
    return BrokerConfig(
        broker_name=name,
        broker_cluster_name=f"of-{name}",
        broker_ip1=HOST,
        listen_port=free_port(),
        namesrv_addr=f"{HOST}:{server.port}",
        topics=TOPICS,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("4.8.0", {}),
        ("5.5.0", {}),
        ("4.9.7", {"compressed_register": True}),
        ("5.5.0", {"compressed_register": True}),
        ("5.5.0", {"serialize_type": "ROCKETMQ"}),
        ("5.5.0", {"enable_split_registration": True, "split_registration_size": 4}),
    ],
    ids=str,
)
def test_what_is_announced_is_what_clients_see(
    server: NameServer, ns: Client, version: str, more: dict[str, object]
) -> None:
    config = broker(server, "seen", version=version, **more)
    with BrokerAgent(config, listener=RecordingListener()) as agent:
        route = ns.get_route("TB")
        assert route
        (queues,) = route.queue_datas
        assert (queues.broker_name, queues.read_queue_nums, queues.perm) == ("seen", 4, 4)
        assert route.broker_datas[0].broker_addrs == {0: config.broker_addr}
        assert set(ns.get_topics_of_cluster("of-seen").topic_list) == agent.topics.keys()
        agent.put_topics(TopicConfig("TC", 3, 3))
        assert ns.get_route("TC")
        agent.delete_topic("TC")
    assert ns.get_route("TA") is None
    assert "seen" not in ns.get_cluster_info().broker_addr_table


def test_a_round_that_is_not_needed_sends_nothing(server: NameServer, ns: Client) -> None:
    listener = RecordingListener()
    with BrokerAgent(broker(server, "quiet"), listener=listener) as agent:
        assert agent.register(forced=False) == []
        agent.delete_topic("TA")
        assert [type(outcome) for outcome in agent.register(forced=False)] == [Registered]
        assert agent.register(forced=False) == []
    assert listener.of(Failed) == []


def _addresses(ns: Client, name: str) -> dict[int, str]:
    return ns.get_cluster_info().broker_addr_table[name].broker_addrs


def test_the_sync_client_changes_what_is_announced(server: NameServer, ns: Client) -> None:
    address = f"{HOST}:{server.port}"
    with BrokerAgent(broker(server, "slave", broker_id=1), listener=RecordingListener()) as agent:
        assert _addresses(ns, "slave").keys() == {1}
        assert agent.change_broker_id(0) == [Registered(address)]
        assert _addresses(ns, "slave") == {0: agent.config.broker_addr}
        with pytest.raises(AddressError):
            agent.set_name_servers(["nowhere"])
        assert agent.name_servers == (address,)
        agent.set_name_servers([])
        assert agent.register() == []
        agent.set_name_servers([address])
    assert "slave" not in ns.get_cluster_info().broker_addr_table
    with pytest.raises(ConnectionClosed):
        agent.register()


def test_a_blocking_agent_whose_port_is_taken_leaves_nothing_behind(server: NameServer, ns: Client) -> None:
    config = broker(server, "taken", listen=True, bind_address=HOST)
    threads = threading.active_count()
    agent = BrokerAgent(config, listener=RecordingListener())
    with socket.create_server((HOST, config.listen_port)), pytest.raises(OSError, match="in use"):
        agent.__enter__()
    assert threading.active_count() == threads
    assert "taken" not in ns.get_cluster_info().broker_addr_table


def test_a_slave_learns_its_master_and_both_learn_which_one_acts(server: NameServer, ns: Client) -> None:
    acting = {"enable_slave_acting_master": True, "listen": True, "bind_address": HOST}
    slave_heard = RecordingListener()
    master = broker(server, "pair", **acting)
    slave = broker(server, "pair", broker_id=1, **acting)
    with BrokerAgent(slave, listener=slave_heard) as second:
        with BrokerAgent(master, listener=RecordingListener()):
            second.register()
            assert (second.master.master_addr, second.master.ha_server_addr) == (
                master.broker_addr,
                master.ha_server_addr,
            )
            eventually(lambda: second.min_broker_id == 0)
        gone = MinBrokerIdChanged(1, slave.broker_addr, master.broker_addr)
        eventually(lambda: gone in slave_heard.of(MinBrokerIdChanged))
        route = ns.get_route("TA")
        assert route
        assert route.broker_datas[0].broker_addrs == {0: slave.broker_addr}


@pytest.mark.parametrize("listens", [True, False])
def test_a_broker_that_listens_outlives_a_lost_connection(server: NameServer, listens: bool) -> None:
    """A name server that loses a broker's connection tries its address before it takes the broker away."""
    config = broker(server, "lost", listen=listens, bind_address=HOST)
    listener = RecordingListener()

    async def play() -> None:
        async with AsyncNameServerClient(config.namesrv_addr) as ns:
            client = AsyncRemotingClient(options_for(config))
            async with AsyncBrokerAgent(config, client=client, listener=listener):
                await client.close()
                for _ in range(30 if listens else 500):
                    await asyncio.sleep(0.02)
                    if await ns.get_route("TA") is None:
                        break
                assert (await ns.get_route("TA") is not None) is listens
            name, cluster = config.broker_name, config.broker_cluster_name
            await ns.unregister_broker(BrokerIdentity(cluster, name, config.broker_addr))

    asyncio.run(play())
    assert [type(event) for event in listener.events] == [Registered, Failed]


def test_the_program_unregisters_when_it_is_terminated(
    server: NameServer, ns: Client, tmp_path: Path
) -> None:
    path = tmp_path / "broker.toml"
    path.write_text(
        f"""
        brokerName = "program"
        brokerIP1 = "{HOST}"
        listenPort = {free_port()}
        namesrvAddr = "{HOST}:{server.port}"
        dataVersionFile = "{tmp_path}/version.json"
        [[topics]]
        topicName = "OfProgram"
        """
    )
    for _ in range(2):
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        )
        address = f"address='{HOST}:{server.port}'"
        with program:
            assert program.stdout
            assert program.stdout.readline().startswith(f"Registered({address}, ")
            assert ns.get_route("OfProgram")
            program.send_signal(signal.SIGTERM)
            assert program.stdout.read() == f"Unregistered({address})\n"
        assert program.returncode == 0
        assert ns.get_route("OfProgram") is None
    assert (tmp_path / "version.json").exists()


@pytest.mark.parametrize(
    ("text", "reported"), [("listenPort = 0", "listenPort: expected int >= 1"), ("", "")]
)
def test_the_program_says_why_it_does_not_start(tmp_path: Path, text: str, reported: str) -> None:
    path = tmp_path / "broker.toml"
    path.write_text(text)
    if not text:
        path.unlink()
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        capture_output=True,
        text=True,
        timeout=20,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert ended.returncode == 1
    assert f"ConfigError: {path}: {reported}" in ended.stderr
