"""Lines that are rate-limited, and what they say of an error."""

import logging

import pytest

from worker.logs.rate_limited_log import RateLimitedFilter, RateLimitedLog


def test_a_line_is_repeated_after_a_while_with_how_many_were_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    log = RateLimitedLog(logging.getLogger("test"), every_s=5, clock=lambda: now)
    for _ in range(3):
        log.warning("no %s", "store")
    now = 5.0
    log.warning("no %s", "store")
    assert caplog.messages == ["no store", "no store (and 2 more like it)"]


def test_a_line_of_another_kind_is_not_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = RateLimitedLog(logging.getLogger("test"), every_s=5, clock=lambda: now)
    for kind in ("maxTopics", "maxTopics", "maxBrokers"):
        log.warning("more than %s", kind, kind=kind)
    now = 5.0
    log.warning("more than %s", "maxTopics", kind="maxTopics")
    assert caplog.messages == [
        "more than maxTopics",
        "more than maxBrokers",
        "more than maxTopics (and 1 more like it)",
    ]


def test_an_error_without_a_text_is_named_by_its_type(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logging.getLogger("test"), every_s=0)
    for error in (TimeoutError(), OSError("cut")):
        log.warning("away: %s; retries", error)
    assert caplog.messages == ["away: TimeoutError; retries", "away: cut; retries"]


def test_lines_of_a_librarys_logger_are_limited_too(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = logging.getLogger("test.library")
    limited = RateLimitedFilter(every_s=5, clock=lambda: now)
    log.addFilter(limited)
    try:
        for reason in ("refused", "refused", "away"):
            log.error("no queue: %s", reason)
        log.error("another")
        now = 5.0
        log.error("no queue: %s", "away")
    finally:
        log.removeFilter(limited)
    assert caplog.messages == ["no queue: refused", "another", "no queue: away (and 2 more like it)"]
