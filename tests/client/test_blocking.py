"""A loop in a thread, and the blocking name server on it."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from client.blocking import LoopThread
from client.errors import ConnectError, ConnectionClosed
from client.name_server import calls
from client.name_server.client import NameServer
from tests.harness.patience import eventually


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.close()


def test_it_runs_what_it_is_given_and_gives_back_results_and_errors(loop: LoopThread) -> None:
    async def divide(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a // b

    assert loop.run(divide(6, 3)) == 2
    with pytest.raises(ZeroDivisionError):
        loop.run(divide(6, 0))


def test_several_threads_may_use_it_at_once(loop: LoopThread) -> None:
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
    loop = LoopThread()
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
    loop: LoopThread, monkeypatch: pytest.MonkeyPatch
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


def test_a_blocking_call_in_its_own_loop_is_an_error_and_not_a_deadlock(loop: LoopThread) -> None:
    async def inner() -> None: ...

    async def outer() -> None:
        loop.run(inner())

    with pytest.raises(RuntimeError, match="own event loop"):
        loop.run(outer())


def test_a_closed_name_server_says_so() -> None:
    ns = NameServer("127.0.0.1:1;127.0.0.2:1")
    with pytest.raises(ConnectError):
        ns.get_topics()
    with pytest.raises(ConnectError):
        ns.ask_all(calls.get_topics())
    assert sorted(ns.addresses) == ["127.0.0.1:1", "127.0.0.2:1"]
    ns.close()
    ns.close()
    for closed in (ns, ns.at("127.0.0.1:1"), ns.within(1)):
        with pytest.raises(ConnectionClosed, match="this client is closed"):
            closed.get_topics()
