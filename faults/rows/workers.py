"""Processes of the service itself: remoting workers, scheduler, job worker."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from faults.fleet import Fleet
from faults.places import Place, plain
from faults.row import Promise, Row
from faults.rows.brokers import LEASE_S, PROCESSES, silent
from testbed.eventually import eventually
from testbed.processes import Family, send, stopped, two_more_of_each

REPLACED_WITHIN_S = 30.0


@contextmanager
def one_worker(number: signal.Signals, place: Place, fleet: Fleet) -> Iterator[None]:
    """Send a signal to one of the workers."""
    victim = place.family.remoting_workers[0]
    send(number, victim)
    yield
    eventually(lambda: place.whole(but={victim}), REPLACED_WITHIN_S)


@contextmanager
def reload(place: Place, fleet: Fleet) -> Iterator[None]:
    """Send SIGHUP to the supervisor, which replaces all processes."""
    before = set(place.family.remoting_workers)
    place.server.reload()
    yield
    eventually(lambda: place.whole(but=before), REPLACED_WITHIN_S)


@contextmanager
def schedule_and_brokers(
    schedule: Callable[[Family], AbstractContextManager[None]], place: Place, fleet: Fleet
) -> Iterator[None]:
    """Something is done to the schedule, and a tenth of the brokers hang; they go on at its end."""
    with schedule(place.family), silent(10, place, fleet):
        yield


def _schedule_row(
    name: str, title: str, schedule: Callable[[Family], AbstractContextManager[None]]
) -> Row[Place]:
    return Row(
        name=name,
        title=f"{title}, while a tenth of the brokers hang until their leases of {LEASE_S:.0f} s are over",
        place=partial(plain, lease_s=LEASE_S),
        fault=partial(schedule_and_brokers, schedule),
        lasts_s=LEASE_S + 5,
        processes=PROCESSES,
    )


CONNECTIONS_END = Promise(registrations_fail=True)
"""A registration may be on its way to a worker that has just ended; its broker repeats it with the next heartbeat."""


def _of_workers(name: str, title: str, number: signal.Signals) -> Row[Place]:
    return Row(
        name=name, title=title, place=plain, fault=partial(one_worker, number), promise=CONNECTIONS_END
    )


ROWS = (
    _of_workers("worker-kill", "kill -9 of one of two workers", signal.SIGKILL),
    _of_workers("worker-term", "SIGTERM of one of two workers", signal.SIGTERM),
    Row(
        name="reload",
        title="reload of all workers (SIGHUP)",
        place=plain,
        fault=reload,
        promise=CONNECTIONS_END,
    ),
    _schedule_row("scheduler-dead", "scheduler hangs", lambda family: stopped(*family.schedulers)),
    _schedule_row("jobs-dead", "RQ worker hangs", lambda family: stopped(*family.job_workers)),
    _schedule_row("three-schedulers", "three schedulers and three RQ workers", two_more_of_each),
)
