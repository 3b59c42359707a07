"""The sync and the async client against the real mqnamesrv, with every call."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqns.errors import CallTimeout, ConnectError, ConnectionClosed
from mqns.name_server import calls
from mqns.name_server.client import AsyncNameServerClient, NameServerClient
from mqns.remoting.options import RemotingOptions
from mqns.remoting.tls import tls_context
from rocketmq_remoting.command import SerializeType
from rocketmq_remoting.topic_list import TopicList
from testbed.eventually import eventually
from testbed.nameserver import NameServer as Server
from tests.mqns.name_server.every_call import play


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"), {})
    yield server.start()
    server.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server for one test alone, not started."""
    server = Server(tmp_path, {})
    yield server
    server.stop()


@pytest.fixture(params=list(SerializeType), ids=lambda kind: kind.name)
def options(request: pytest.FixtureRequest) -> RemotingOptions:
    return RemotingOptions(serialize_type=request.param)


def test_every_call_of_the_sync_client(server: Server, options: RemotingOptions) -> None:
    with NameServerClient(f"127.0.0.1:{server.port}", options=options, timeout_s=30) as ns:
        play(lambda name, args, more: getattr(ns, name)(*args, **more))


def test_every_call_of_the_async_client(server: Server, options: RemotingOptions) -> None:
    with asyncio.Runner() as runner:

        async def opened() -> AsyncNameServerClient:
            return AsyncNameServerClient(f"127.0.0.1:{server.port}", options=options, timeout_s=30)

        ns = runner.run(opened())
        play(lambda name, args, more: runner.run(getattr(ns, name)(*args, **more)))
        runner.run(ns.close())


def test_a_oneway_call_arrives(server: Server) -> None:
    with NameServerClient(f"127.0.0.1:{server.port}") as ns:
        ns.oneway(calls.put_kv_config("oneway", "k", "v"))
        eventually(lambda: ns.get_kv_config("oneway", "k") == "v")


def test_over_tls(server: Server) -> None:
    options = RemotingOptions(tls=tls_context(auth_server=False))
    with NameServerClient(f"127.0.0.1:{server.port}", options=options, timeout_s=30) as ns:
        assert ns.get_topics() == TopicList(())


def test_one_that_goes_away_is_left_for_another(server: Server, own: Server) -> None:
    own.options |= {"enableShutdownGracefully": "true", "shutdownWaitTimeSeconds": "3"}
    own.start()
    address, other = f"127.0.0.1:{own.port}", f"127.0.0.1:{server.port}"
    with NameServerClient(address, timeout_s=30) as ns, NameServerClient(other) as second:
        second.put_kv_config("place", "k", "the other")
        assert ns.get_kv_config("place", "k") is None
        ns.set_addresses([address, other])
        own.begin_stop()
        eventually(lambda: ns.get_kv_config("place", "k") == "the other", 20)
        second.delete_kv_config("place", "k")


def test_a_change_goes_to_all_in_turn(server: Server) -> None:
    local, other = f"127.0.0.1:{server.port}", f"127.0.0.2:{server.port}"
    call = calls.put_kv_config("in turn", "k", "v")
    with NameServerClient(local) as ns:
        assert ns.call_all(call) == {local: None}
    with NameServerClient([local, other]) as ns, pytest.raises(ConnectError) as error:
        ns.call_all(call)
    assert error.value.address == other


def test_a_server_that_ends_and_comes_back(own: Server) -> None:
    own.start()
    with NameServerClient(f"127.0.0.1:{own.port}", timeout_s=30) as ns:
        ns.put_kv_config("ns", "k", "v")
        own.stop()
        with pytest.raises((ConnectError, ConnectionClosed)):
            ns.get_topics()
        with pytest.raises(ConnectError, match="Connection refused"):
            ns.get_topics()
        own.options["listenPort"] = str(own.port)
        own.start()
        assert ns.get_topics() == TopicList(())
        with pytest.raises(CallTimeout):
            ns.within(0).get_topics()
