"""A loop in a thread, and the blocking name server on it."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import assert_type

import pytest

from mqns.errors import AddressError, ConnectError, ConnectionClosed
from mqns.name_server import calls
from mqns.name_server.client import NameServerClient
from mqns.remoting.request import Request
from mqns.remoting.sync_client import RemotingClient
from mqns.sync import EventLoopThread
from rocketmq_remoting.command import Command, encode
from testbed.eventually import eventually
from tests.mqns.remoting.servers import answering, deaf, served


@pytest.fixture
def loop() -> Iterator[EventLoopThread]:
    loop = EventLoopThread()
    yield loop
    loop.close()


def test_it_runs_what_it_is_given_and_gives_back_results_and_errors(loop: EventLoopThread) -> None:
    async def divide(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a // b

    assert loop.run(divide(6, 3)) == 2
    with pytest.raises(ZeroDivisionError):
        loop.run(divide(6, 0))


def test_several_threads_may_use_it_at_once(loop: EventLoopThread) -> None:
    together = asyncio.Barrier(4)

    async def meet() -> None:
        await together.wait()

    threads = [threading.Thread(target=lambda: loop.run(meet())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_closing_ends_what_runs_and_the_thread() -> None:
    loop = EventLoopThread()
    began = threading.Event()
    ended: list[BaseException] = []

    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    def run() -> None:
        try:
            loop.run(wait())
        except ConnectionClosed as error:
            ended.append(error)

    caller = threading.Thread(target=run)
    caller.start()
    assert began.wait(5)
    loop.close()
    loop.close()
    caller.join(5)
    assert [str(error) for error in ended] == ["this client is closed"]
    assert not [thread for thread in threading.enumerate() if thread.name == "rocketmq-client"]
    with pytest.raises(ConnectionClosed):
        loop.run(wait())


def test_an_interrupt_of_the_caller_cancels_what_runs(
    loop: EventLoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    state: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            state.append("cancelled")
            raise

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("concurrent.futures.Future.result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loop.run(wait())
    eventually(lambda: state == ["cancelled"])


def test_a_blocking_call_in_its_own_loop_is_an_error_and_not_a_deadlock(loop: EventLoopThread) -> None:
    async def inner() -> None: ...

    async def outer() -> None:
        loop.run(inner())

    with pytest.raises(RuntimeError, match="own event loop"):
        loop.run(outer())


def test_a_closed_name_server_says_so() -> None:
    ns = NameServerClient("127.0.0.1:1;127.0.0.2:1")
    with pytest.raises(ConnectError):
        ns.get_topics()
    with pytest.raises(ConnectError):
        ns.call_all(calls.get_topics())
    assert sorted(ns.addresses) == ["127.0.0.1:1", "127.0.0.2:1"]
    ns.close()
    ns.close()
    for closed in (ns, ns.at("127.0.0.1:1"), ns.within(1)):
        with pytest.raises(ConnectionClosed, match="this client is closed"):
            closed.get_topics()


def test_the_sync_remoting_client() -> None:
    with served(answering) as address, RemotingClient(name_servers=[address]) as client:
        assert client.invoke(None, Request(105, body=b"body"), timeout_s=30).body == b"body"
        call = calls.get_kv_config("ns", "k")
        assert_type(client.call(address, call, timeout_s=30), str | None)
        client.invoke_oneway(address, Request(904), timeout_s=30)
        later = client.invoke_async(address, Request(105, body=b"later"), timeout_s=30)
        assert_type(later, Future[Command])
        assert later.result(30).body == b"later"
        assert client.name_servers == (address,)
        client.set_name_servers(["127.0.0.1:1"])
        with pytest.raises(ConnectError):
            client.invoke(None, Request(105))
        with pytest.raises(AddressError):
            client.set_name_servers(["nonsense"])
    client.close()
    with pytest.raises(ConnectionClosed):
        client.invoke(address, Request(105))
    with pytest.raises(ConnectionClosed):
        client.invoke_async(address, Request(105))


def test_pushes_are_handled_on_the_thread_of_the_client() -> None:
    came: list[tuple[str, int, str]] = []

    async def pushing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(encode(Command(40, 7, 2)))

    with served(pushing) as address, RemotingClient() as client:
        client.on_push(40, lambda peer, push: came.append((peer, push.code, threading.current_thread().name)))
        client.invoke_oneway(address, Request(105), timeout_s=30)
        eventually(lambda: came, 30)
        assert came == [(address, 40, "rocketmq-client")]


def test_calls_under_way_fail_when_it_is_closed() -> None:
    with served(deaf) as address:
        client = RemotingClient()
        calls_ = [client.invoke_async(address, Request(105), timeout_s=60) for _ in range(10)]
        client.close()
        for call in calls_:
            assert isinstance(call.exception(30), ConnectionClosed)


def test_the_next_call_may_be_made_in_a_callback() -> None:
    results: list[Future[Command]] = []
    with served(answering) as address, RemotingClient() as client:
        first = client.invoke_async(address, Request(1), timeout_s=30)
        first.add_done_callback(
            lambda _: results.append(client.invoke_async(address, Request(2), timeout_s=30))
        )
        assert first.result(30).code == 0
        eventually(lambda: results, 30)
        assert results[0].result(30).code == 0


def test_an_address_that_is_none_is_an_error_before_a_thread_is_begun() -> None:
    with pytest.raises(AddressError):
        NameServerClient("nonsense:port")
    with pytest.raises(AddressError):
        RemotingClient(name_servers=["nonsense:port"])
    assert not [thread for thread in threading.enumerate() if thread.name == "rocketmq-client"]
