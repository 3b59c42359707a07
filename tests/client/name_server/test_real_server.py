"""Both faces against the real mqnamesrv, with every call."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.errors import CallTimeout, ConnectError, ConnectionClosed
from client.name_server import calls
from client.name_server.client import AsyncNameServer, NameServer
from client.wire.options import RemotingOptions
from client.wire.tls import client_context
from remoting.command import SerializeType
from remoting.topic_list import TopicList
from tests.client.name_server.every_call import play
from tests.harness.nameserver import NameServer as Server
from tests.harness.patience import eventually


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


def test_every_call_of_the_blocking_face(server: Server, options: RemotingOptions) -> None:
    with NameServer(f"127.0.0.1:{server.port}", options=options, timeout_s=30) as ns:
        play(lambda name, args, more: getattr(ns, name)(*args, **more))


def test_every_call_of_the_asynchronous_face(server: Server, options: RemotingOptions) -> None:
    with asyncio.Runner() as runner:

        async def opened() -> AsyncNameServer:
            return AsyncNameServer(f"127.0.0.1:{server.port}", options=options, timeout_s=30)

        ns = runner.run(opened())
        play(lambda name, args, more: runner.run(getattr(ns, name)(*args, **more)))
        runner.run(ns.close())


def test_a_oneway_call_is_heard(server: Server) -> None:
    with NameServer(f"127.0.0.1:{server.port}") as ns:
        ns.oneway(calls.put_kv_config("oneway", "k", "v"))
        eventually(lambda: ns.get_kv_config("oneway", "k") == "v", 5)


def test_over_tls(server: Server) -> None:
    options = RemotingOptions(tls=client_context(auth_server=False))
    with NameServer(f"127.0.0.1:{server.port}", options=options, timeout_s=30) as ns:
        assert ns.get_topics() == TopicList(())


def test_one_that_goes_away_is_left_for_another(server: Server, own: Server) -> None:
    own.options |= {"enableShutdownGracefully": "true", "shutdownWaitTimeSeconds": "3"}
    own.start()
    address, other = f"127.0.0.1:{own.port}", f"127.0.0.1:{server.port}"
    with NameServer(address, timeout_s=30) as ns, NameServer(other) as second:
        second.put_kv_config("who", "k", "the other")
        assert ns.get_kv_config("who", "k") is None
        ns.set_addresses([address, other])
        own.begin_stop()
        eventually(lambda: ns.get_kv_config("who", "k") == "the other", 20)
        second.delete_kv_config("who", "k")


def test_a_change_goes_to_all_in_turn(server: Server) -> None:
    local, other = f"127.0.0.1:{server.port}", f"127.0.0.2:{server.port}"
    call = calls.put_kv_config("in turn", "k", "v")
    with NameServer(local) as ns:
        assert ns.ask_all(call) == {local: None}
    with NameServer([local, other]) as ns, pytest.raises(ConnectError) as error:
        ns.ask_all(call)
    assert error.value.address == other


def test_a_server_that_ends_and_comes_back(own: Server) -> None:
    own.start()
    with NameServer(f"127.0.0.1:{own.port}", timeout_s=30) as ns:
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
