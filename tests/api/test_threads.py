"""Which request a thread of an HTTP worker answers next."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from api.transport.threads import HEALTH, RequestThreads


def connection(host: str, number: int, path: str = "/v1/topics") -> Any:
    return SimpleNamespace(client=(host, number), parser=SimpleNamespace(path=path))


def test_each_host_that_waits_has_one_request_answered_then_the_next() -> None:
    answered = []
    begin = Event()

    def handle(one: Any) -> bool:
        assert begin.wait(10)
        answered.append(one.client)
        return True

    threads = RequestThreads(1)
    many = [threads.submit(handle, connection("10.0.0.1", number)) for number in range(5)]
    few = [threads.submit(handle, connection(host, 0)) for host in ("10.0.0.2", "10.0.0.3")]
    begin.set()
    assert all(done.result(10) for done in many + few)
    threads.shutdown()
    assert answered == [
        ("10.0.0.1", 0),
        ("10.0.0.1", 1),
        ("10.0.0.2", 0),
        ("10.0.0.3", 0),
        ("10.0.0.1", 2),
        ("10.0.0.1", 3),
        ("10.0.0.1", 4),
    ]


def test_a_fault_is_that_of_its_request() -> None:
    def handle(one: Any) -> bool:
        return bool(1 // one.client[1])

    threads = RequestThreads(1)
    failed, answered = (threads.submit(handle, connection("10.0.0.1", number)) for number in (0, 1))
    with pytest.raises(ZeroDivisionError):
        failed.result(10)
    assert answered.result(10)
    threads.shutdown()


@pytest.mark.parametrize("path", HEALTH)
def test_health_waits_for_no_other_request(path: str) -> None:
    end = Event()
    threads = RequestThreads(1)
    busy = threads.submit(lambda _: end.wait(10), connection("10.0.0.1", 0))
    assert threads.submit(lambda _: True, connection("10.0.0.1", 1, path)).result(10)
    assert not busy.done()
    end.set()
    assert busy.result(10)
    threads.shutdown()
