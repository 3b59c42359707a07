"""A history of a running server, and what else was done to it meanwhile."""

import random
import signal
import time

from faults.history import History, Recorder
from launcher.store import EmbeddedStore
from tests.harness.nameserver import NameServer
from tests.service.processes import Family, send


def address(server: NameServer) -> str:
    return f"127.0.0.1:{server.port}"


def recorded(server: NameServer, for_s: float, seed: int = 0) -> History:
    """What clients did in that time, undisturbed, with names of their own."""
    recorder = Recorder([address(server)], prefix=f"round-{seed}", seed=seed)
    recorder.start()
    time.sleep(for_s)
    return recorder.stop()


def killed_workers(server: NameServer, for_s: float, every_s: float) -> int:
    """SIGKILL to one worker after the other, the next when all are back; how many."""
    chance, kills, end_s = random.Random(0), 0, time.monotonic() + for_s
    while time.monotonic() < end_s:
        time.sleep(every_s)
        workers = Family.of(server.pid).remoting_workers
        if len(workers) == int(server.options["remotingWorkers"]):
            send(signal.SIGKILL, chance.choice(workers))
            kills += 1
    return kills


def expired(server: NameServer) -> int:
    """How many members were removed because their lease was over."""
    with server.store() as store:
        entries = [fields for _, fields in store.xrange(server.keys.events)]
    return sum(entry["kind"] == "broker_removed" and entry["cause"] == "expired" for entry in entries)


def frozen(store: EmbeddedStore, for_s: float) -> tuple[float, float]:
    """The store stands still for so long; from when to when (`time.monotonic`)."""
    began_s = time.monotonic()
    send(signal.SIGSTOP, store.child.pid)
    time.sleep(for_s)
    send(signal.SIGCONT, store.child.pid)
    return began_s, time.monotonic()
