"""A history of a running server, and faults meanwhile."""

import random
import signal
import time
from functools import partial

from faults.history import History, Recorder
from mqnamesrv.store import EmbeddedStore
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.processes import Family, send

BACK_S = 10.0


def address(server: NameServer) -> str:
    return f"127.0.0.1:{server.port}"


def recorded(server: NameServer, for_s: float, seed: int = 0) -> History:
    """Return the history of clients in that time, with names of their own."""
    recorder = Recorder([address(server)], prefix=f"round-{seed}", seed=seed)
    recorder.start()
    time.sleep(for_s)
    return recorder.stop()


def kill_workers(server: NameServer, times: int, every_s: float) -> None:
    """Send SIGKILL to one worker after the other, each when all run, and pause after each."""
    chance = random.Random(0)
    for _ in range(times):
        time.sleep(every_s)
        send(signal.SIGKILL, chance.choice(eventually(partial(_all_workers, server), BACK_S)))
    time.sleep(every_s)


def _all_workers(server: NameServer) -> tuple[int, ...]:
    """Return the workers' pids, none while some do not run."""
    workers = Family.of(server.pid).remoting_workers
    return workers if len(workers) == int(server.options["remotingWorkers"]) else ()


def expired(server: NameServer) -> int:
    """Return how many members were removed because their lease was over."""
    with server.store() as store:
        entries = [fields for _, fields in store.xrange(server.keys.events)]
    return sum(entry["kind"] == "broker_removed" and entry["cause"] == "expired" for entry in entries)


def frozen(store: EmbeddedStore, for_s: float) -> tuple[float, float]:
    """Stop the store for so long; return from when to when (`time.monotonic`)."""
    began_s = time.monotonic()
    send(signal.SIGSTOP, store.child.pid)
    time.sleep(for_s)
    send(signal.SIGCONT, store.child.pid)
    return began_s, time.monotonic()
