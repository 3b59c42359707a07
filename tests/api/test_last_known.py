"""A list that many threads ask for, and that stays while it cannot be read."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from api import last_known
from api.last_known import Addresses, LastKnown
from registry.errors import StoreUnavailable
from worker.logs.rate_limited_log import RateLimitedLog

OLD, NEW = ("10.0.0.1:9876",), ("10.0.0.2:9876",)


class Source:
    """Returns or raises one after another; `now` is the time of what reads it."""

    def __init__(self, *replies: Addresses | Exception) -> None:
        self._replies: Iterator[Addresses | Exception] = iter(replies)
        self.now = 0.0

    def read(self) -> Addresses:
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def known(self, at_first: Addresses = ()) -> LastKnown:
        return LastKnown("a list", self.read, 1.0, at_first, lambda: self.now)


@pytest.fixture(autouse=True)
def all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    log = RateLimitedLog(logging.getLogger(last_known.__name__))
    monkeypatch.setattr(last_known, "log", log)


def test_it_is_read_again_when_its_time_is_over() -> None:
    source = Source(OLD, NEW)
    known = source.known()
    assert (known(), known()) == (OLD, OLD)
    source.now = 1.0
    assert known() == NEW


@pytest.mark.parametrize("error", [StoreUnavailable("away"), OSError("no such name")])
def test_it_stays_while_it_cannot_be_read(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    source = Source(OLD, error, NEW)
    known = source.known()
    assert known() == OLD
    source.now = 1.0
    assert (known(), known()) == (OLD, OLD)
    assert "a list cannot be read" in caplog.text
    source.now = 2.0
    assert known() == NEW


def test_what_could_never_be_read_is_as_at_first_and_is_not_tried_for_each_caller() -> None:
    source = Source(StoreUnavailable("away"), NEW)
    known = source.known(OLD)
    assert (known(), known()) == (OLD, OLD)
    source.now = 1.0
    assert known() == NEW


def test_a_list_that_is_empty_now_is_no_more_what_it_was() -> None:
    source = Source(OLD, ())
    known = source.known()
    assert known() == OLD
    source.now = 1.0
    assert known() == ()


def test_no_thread_waits_for_one_that_reads() -> None:
    source, began, may_end = Source(OLD), Event(), Event()
    known = source.known()
    assert known() == OLD

    def slowly() -> Addresses:
        began.set()
        assert may_end.wait(10)
        return NEW

    source.now, source.read = 1.0, slowly  # type: ignore[method-assign]
    known._read = slowly
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(known)
        assert began.wait(10)
        assert known() == OLD
        may_end.set()
        assert reading.result(10) == NEW
