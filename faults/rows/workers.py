"""Processes of the service itself: remoting workers, scheduler, job worker."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from faults.fleet import PERIOD_MS, Fleet
from faults.places import Place, plain
from faults.row import Row
from tests.harness.patience import eventually
from tests.service.processes import Family, send, stopped, two_more_of_each

REPLACED_WITHIN_S = 30.0
LEASE_S = 3 * PERIOD_MS / 1000
"""Of brokers that fall silent while nobody keeps the schedule; 120 s by default, four of their periods."""


@contextmanager
def one_worker(number: signal.Signals, place: Place, fleet: Fleet) -> Iterator[None]:
    """A signal to one of the workers."""
    victim = place.family.remoting_workers[0]
    send(number, victim)
    yield
    eventually(lambda: place.whole(but={victim}), REPLACED_WITHIN_S)


@contextmanager
def reload(place: Place, fleet: Fleet) -> Iterator[None]:
    """SIGHUP to the supervisor: all processes make way for new ones."""
    before = set(place.family.remoting_workers)
    place.server.reload()
    yield
    eventually(lambda: place.whole(but=before), REPLACED_WITHIN_S)


def while_brokers_fall_silent(
    schedule: Callable[[Family], AbstractContextManager[None]], place: Place, fleet: Fleet
) -> AbstractContextManager[None]:
    """Something is done to the schedule, and a tenth of the brokers hang; they go on at its end."""

    @contextmanager
    def fault() -> Iterator[None]:
        silent = fleet.processes[0]
        with schedule(place.family):
            silent.stop()
            yield
        silent.go_on()

    return fault()


def _schedule_row(
    name: str, title: str, schedule: Callable[[Family], AbstractContextManager[None]]
) -> Row[Place]:
    return Row(
        name=name,
        title=f"{title}, while a tenth of the brokers hang until their leases of {LEASE_S:.0f} s are over",
        place=partial(plain, lease_s=LEASE_S),
        fault=partial(while_brokers_fall_silent, schedule),
        lasts_s=LEASE_S + 5,
        processes=10,
    )


def _of_workers(name: str, title: str, number: signal.Signals) -> Row[Place]:
    return Row(name=name, title=title, place=plain, fault=partial(one_worker, number))


ROWS = (
    _of_workers("worker-kill", "kill -9 of one of two workers", signal.SIGKILL),
    _of_workers("worker-term", "SIGTERM of one of two workers", signal.SIGTERM),
    Row(name="reload", title="reload of all workers (SIGHUP)", place=plain, fault=reload),
    _schedule_row("scheduler-dead", "scheduler hangs", lambda family: stopped(*family.schedulers)),
    _schedule_row("jobs-dead", "RQ worker hangs", lambda family: stopped(*family.job_workers)),
    _schedule_row("three-schedulers", "three schedulers and three RQ workers", two_more_of_each),
)
