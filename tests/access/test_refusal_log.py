"""Refused requests are logged once a minute for each network and class, and however many come, memory stays."""

import logging

import pytest

from access.classes import AccessClass
from access.refusal_log import EVERY_S, NETWORKS_MOST, RefusalLog
from tests.logged import logged

READ, ADMIN = AccessClass.READ, AccessClass.ADMIN
STEP = "; docs/access.md says how to admit callers that are yours"


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> RefusalLog:
    return RefusalLog(logging.getLogger("tests.refusals"), clock)


def test_a_network_and_class_has_a_line_a_minute(
    log: RefusalLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for host in ("10.0.0.1", "10.0.0.2", "::ffff:10.0.0.3", "10.0.0.1"):
        log.refused(host, ADMIN, f"no, {host}")
    log.refused("10.0.1.1", ADMIN, "no, another network")
    log.refused("10.0.0.1", READ, "no, another class")
    assert logged(caplog) == [
        f"no, {what}{STEP}" for what in ("10.0.0.1", "another network", "another class")
    ]
    caplog.clear()
    clock.now_s += EVERY_S
    log.refused("10.0.0.9", ADMIN, "no, 10.0.0.9")
    assert logged(caplog) == [f"no, 10.0.0.9, and 3 more from 10.0.0.0/24{STEP}"]


def test_hosts_of_an_ipv6_link_are_one(
    log: RefusalLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for host in ("fd00::1", "fd00::2", "fd00:0:0:1::1"):
        log.refused(host, ADMIN, host)
    assert [line.partition(";")[0] for line in logged(caplog)] == ["fd00::1", "fd00:0:0:1::1"]
    clock.now_s += EVERY_S
    log.refused("fd00::3", ADMIN, "fd00::3")
    assert "and 1 more from fd00::/64" in logged(caplog)[-1]


def test_of_many_networks_most_have_one_line_together(
    log: RefusalLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Row AC-42: and none of the refusals is left out of the count."""
    for number in range(10_000):
        log.refused(f"10.{number >> 8}.{number & 255}.1", ADMIN, "no")
    assert len(logged(caplog)) == NETWORKS_MOST + 1
    assert len(log._sources) == NETWORKS_MOST + 1
    caplog.clear()
    clock.now_s += EVERY_S
    log.refused("192.168.0.1", ADMIN, "no")
    assert len(log._sources) < NETWORKS_MOST
    for number in range(NETWORKS_MOST + 1):
        log.refused(f"11.0.{number}.1", ADMIN, "no")
    more = 10_000 - NETWORKS_MOST - 1
    assert [line for line in logged(caplog) if "more" in line] == [
        f"no, and {more} more from other networks{STEP}"
    ]


def test_it_says_what_was_answered_all_the_same(log: RefusalLog, caplog: pytest.LogCaptureFixture) -> None:
    log.refused("", ADMIN, "no", answered=True)
    assert logged(caplog) == [f"no, answered all the same (accessMode=observe){STEP}"]
