"""Processes of the service itself: remoting workers, scheduler, job worker."""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from faults.fleet import Fleet
from faults.looks import Look, When
from faults.places import OPTIONS, WORKERS, Place, plain
from faults.row import Promise, Row
from faults.rows.brokers import LEASE_S, PROCESSES, silent
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from testbed.broker import Broker, Topic
from testbed.connection import V4_8_0, Connection
from testbed.eventually import eventually
from testbed.nameserver import accepted_by, environment
from testbed.processes import send, stopped, two_more_of_each

REPLACED_WITHIN_S = 30.0
SEEN_WITHIN_S = 5.0
STOPPED_S = 2.5
"""Less than a client waits for an answer."""
ASKING = 20
"""Connections whose requests wait when the stopped worker goes on."""
LEFT = "of-a-broker-that-leaves"
LEAVING = Broker(name="leaving", addr="127.44.0.1:10911", topics=(Topic(LEFT), Topic(f"{LEFT}-too")))


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
def stopped_worker(place: Place, fleet: Fleet) -> Iterator[None]:
    """Send SIGSTOP to one of the workers while a broker leaves; no later lookup may return it."""
    by_worker = _connections(place)
    victim, asking = max(by_worker.items(), key=lambda item: len(item[1]))
    other = next(connections[0] for pid, connections in by_worker.items() if pid != victim)
    assert LEAVING.register(other).code == 0
    for connection in asking:
        eventually(lambda over=connection: _shows(over), SEEN_WITHIN_S)  # type: ignore[misc]
    with stopped(victim):
        assert LEAVING.unregister(other).code == 0
        yield
        for connection in asking:
            connection.send_command(
                Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, 1, 0, V4_8_0, ext={"topic": LEFT})
            )
    old = sum(LEAVING.name.encode() in connection.receive().body for connection in asking)
    for connections in by_worker.values():
        for connection in connections:
            connection.close()
    assert old == 0, f"{old} of {len(asking)} routes were of before the worker stood still"


def _connections(place: Place) -> dict[int, list[Connection]]:
    """Return some connections to each worker."""
    found: dict[int, list[Connection]] = {}
    while len(found) < WORKERS or max(map(len, found.values())) < ASKING:
        connection = Connection(place.server.port)
        worker = eventually(partial(accepted_by, place.server.process.pid, connection))
        found.setdefault(worker, []).append(connection)
    return found


def _shows(over: Connection) -> bool:
    return LEAVING.name.encode() in over.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": LEFT}).body


@contextmanager
def schedule_and_brokers(
    schedule: Callable[[Place], AbstractContextManager[None]], place: Place, fleet: Fleet
) -> Iterator[None]:
    """Something is done to the schedule, and a tenth of the brokers hang; they go on at its end."""
    with schedule(place), silent(10, place, fleet):
        yield


JOBS_LATE_S = 64.0
"""For so long jobs have not run before the doctor says so (registry.task_times)."""


def _more(place: Place) -> AbstractContextManager[None]:
    options = {"redisUrl": place.variables["REDIS_URL"], "brokerTimeoutMillis": str(int(LEASE_S * 1000))}
    return two_more_of_each(environment(place.stage.folder / "more", OPTIONS | options))


def _schedule_row(
    name: str,
    title: str,
    schedule: Callable[[Place], AbstractContextManager[None]],
    look: Look[Place],
) -> Row[Place]:
    return Row(
        name=name,
        title=f"{title}, while a tenth of the brokers hang until their leases of {LEASE_S:.0f} s are over",
        place=partial(plain, lease_s=LEASE_S),
        fault=partial(schedule_and_brokers, schedule),
        lasts_s=max(LEASE_S, look.after_s) + 5,
        processes=PROCESSES,
        look=look,
    )


CONNECTIONS_END = Promise(registrations_fail=True)
"""A registration may be on its way to a worker that has just ended; its broker repeats it with the next heartbeat."""


def _of_workers(name: str, title: str, number: signal.Signals, *shows: str) -> Row[Place]:
    return Row(
        name=name,
        title=title,
        place=plain,
        fault=partial(one_worker, number),
        promise=CONNECTIONS_END,
        look=Look(shows=shows, when=When.OVER),
    )


JOBS_LATE: Look[Place] = Look(
    shows=("WARNING jobs-late at ", "periodic jobs ended well last: "), after_s=JOBS_LATE_S
)
THREE: Look[Place] = Look(shows=["^3$"])
ROWS = (
    _of_workers(
        "worker-kill",
        "kill -9 of one of two workers",
        signal.SIGKILL,
        "was sent SIGKILL!",
    ),
    _of_workers(
        "worker-term", "SIGTERM of one of two workers", signal.SIGTERM, r"draining [1-9]\d* connections"
    ),
    Row(
        name="reload",
        title="reload of all workers (SIGHUP)",
        place=plain,
        fault=reload,
        promise=CONNECTIONS_END,
        look=Look(shows=("SIGHUP: reloading the workers", r"draining [1-9]\d* connections"), when=When.OVER),
    ),
    Row(
        name="worker-stopped",
        title=f"SIGSTOP of one of two workers for {STOPPED_S:g} s, in which a broker leaves",
        place=plain,
        fault=stopped_worker,
        lasts_s=STOPPED_S,
        look=Look(shows=[r"this worker stood still for [2-9]\.\d s"], when=When.OVER),
    ),
    _schedule_row(
        "scheduler-dead", "scheduler hangs", lambda place: stopped(*place.family.schedulers), JOBS_LATE
    ),
    _schedule_row(
        "jobs-dead", "RQ worker hangs", lambda place: stopped(*place.family.job_workers), JOBS_LATE
    ),
    _schedule_row(
        "three-schedulers",
        "three schedulers and three RQ workers",
        _more,
        THREE,
    ),
)
