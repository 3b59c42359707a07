"""Hosts whose proofs are bad (access.failures)."""

import sys
from concurrent.futures import ThreadPoolExecutor

from access.failures import HOSTS_MOST, MOST, SHUT_S, WITHIN_S, Failures


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def failures_of(host: str, times: int) -> tuple[Failures, Clock]:
    clock = Clock()
    failures = Failures(clock)
    for _ in range(times):
        failures.add(host)
    return failures, clock


def test_ten_bad_proofs_shut_a_host_out_for_a_minute_and_no_other() -> None:
    failures, clock = failures_of("10.0.0.1", MOST - 1)
    assert failures.shut_s("10.0.0.1") == 0
    failures.add("10.0.0.1")
    assert failures.shut_s("10.0.0.1") == SHUT_S
    assert failures.shut_s("10.0.0.2") == 0
    clock.now += SHUT_S - 1
    assert failures.shut_s("10.0.0.1") == 1
    clock.now += 1
    assert failures.shut_s("10.0.0.1") == 0
    failures.add("10.0.0.1")
    assert failures.shut_s("10.0.0.1") == 0


def test_threads_use_it_together() -> None:
    """Those of an HTTP worker, when many hosts are let in again: another caller's request must not fail for it."""
    clock, before = Clock(), sys.getswitchinterval()
    failures = Failures(clock)

    def guess(number: int) -> None:
        for times in range(10_000):
            clock.now += 0.5
            failures.add(f"10.{number}.{times % 7}.1")
            assert failures.shut_s(f"10.{number}.{times % 7}.1") >= 0

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert len(list(threads.map(guess, range(8)))) == 8
    finally:
        sys.setswitchinterval(before)


def test_hosts_that_are_shut_out_are_bounded() -> None:
    failures = Failures(Clock())
    for number in range(HOSTS_MOST + 1):
        for _ in range(MOST):
            failures.add(f"10.{number >> 8}.{number & 255}.1")
    assert len(failures._shut) == HOSTS_MOST


def test_bad_proofs_of_more_than_a_minute_do_not_add_up() -> None:
    failures, clock = failures_of("10.0.0.1", MOST - 1)
    clock.now += WITHIN_S
    failures.add("10.0.0.1")
    assert failures.shut_s("10.0.0.1") == 0


def test_an_ipv6_host_is_its_64() -> None:
    failures, _ = failures_of("[2001:db8::1]", MOST - 1)
    failures.add("[2001:db8::2]")
    assert failures.shut_s("[2001:db8::3]")
    assert not failures.shut_s("[2001:db8:0:1::3]")


def test_so_many_hosts_are_remembered_and_no_more() -> None:
    failures, _ = failures_of("10.255.0.1", MOST - 1)
    for number in range(HOSTS_MOST):
        failures.add(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    failures.add("10.255.0.1")
    assert failures.shut_s("10.255.0.1") == 0
    assert len(failures._times) == HOSTS_MOST
