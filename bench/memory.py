"""Memory of a worker and the store: idle, for each connection, for each (topic, broker) pair, and at most."""

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from bench.asking import Asking
from bench.report import Row
from bench.servers import Server, this_server
from bench.setting import Setting
from bench.workloads import lookup, registered, registration, topic_names, topic_table
from testbed.ports import free_port

IDLE, CONNECTION, PAIR, CACHE = NAMES = (
    "memory: a remoting worker, idle",
    "memory: a worker's for each idle connection",
    "memory: in Redis for each (topic, broker) pair",
    "memory: a worker whose route cache is full",
)
IDLE_MB, CONNECTION_BYTES, PAIR_BYTES = 60, 2048, 300
CONNECTIONS = 5_000
BROKERS, TOPICS = 20, 10_000
CACHE_BYTES = 8 << 20
CACHE_GROWTH = 0.1  # of its bound, by as many routes again as have filled it
SETTLE_S = 1.0
MB = 1e6
LOOKUP = lookup("bench_topic_000000")


def memory(wanted: str, setting: Setting) -> list[Row]:
    """Return four rows, as far as their names hold `wanted`."""
    core = setting.server_core
    with (
        tempfile.TemporaryDirectory() as folder,
        this_server(free_port(), Path(folder), core=core) as server,
        Asking(server.port) as asking,  # its brokers are there as long as it is
    ):
        asking.ask_all(registered(4, 10)())
        asking.ask(LOOKUP)
        rows = [make(server) for name, make in MAKERS.items() if wanted in name]
    if wanted in CACHE:
        bound = {"MQNS_ROUTE_CACHE_BYTES": str(CACHE_BYTES)}
        with (
            tempfile.TemporaryDirectory() as folder,
            this_server(free_port(), Path(folder), core=core, options=bound) as server,
        ):
            rows.append(_cache(server))
    return rows


def _idle(server: Server) -> Row:
    used_mb = worker_bytes(server) / MB
    return Row(
        IDLE, "", "4 brokers, 10 topics", f"≤ {IDLE_MB} MB", f"**{used_mb:.1f} MB**", used_mb <= IDLE_MB
    )


def _connection(server: Server) -> Row:
    before = worker_bytes(server)
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(Asking(server.port)).ask(LOOKUP)
        each = (worker_bytes(server) - before) / CONNECTIONS
    text = f"{CONNECTIONS:,} connections that have asked once"
    return Row(
        CONNECTION, "", text, f"≤ {CONNECTION_BYTES} B", f"**{each:,.0f} B**", each <= CONNECTION_BYTES
    )


def _pair(server: Server) -> Row:
    """The store's own count, the entries of the event stream included, which are trimmed in time."""
    table = topic_table(TOPICS)
    with server.store() as store, Asking(server.port) as asking:
        before = store.info("memory")["used_memory"]
        asking.ask_all(registration(1000 + broker, table) for broker in range(BROKERS))
        used = store.info("memory")["used_memory"] - before
    each = used / (BROKERS * TOPICS)
    text = f"{BROKERS} brokers of {TOPICS:,} topics, their events included"
    return Row(PAIR, "", text, f"≤ {PAIR_BYTES} B", f"**{each:,.0f} B**", each <= PAIR_BYTES)


def _cache(server: Server) -> Row:
    """Routes of more bytes than the cache may hold, then as many others."""
    with Asking(server.port) as asking:
        asking.ask_all(registered(4, 2 * TOPICS)())
        names = topic_names(2 * TOPICS)
        before = worker_bytes(server)
        _ask_each(asking, islice(names, TOPICS))
        full = worker_bytes(server)
        _ask_each(asking, names)
        more = worker_bytes(server) - full
    text = f"bound {CACHE_BYTES / MB:.1f} MB; {TOPICS:,} routes made it grow by {(full - before) / MB:.1f} MB"
    goal = "bounded in bytes"
    measured = f"**{more / MB:+.1f} MB** by {TOPICS:,} more"
    return Row(CACHE, "", text, goal, measured, more <= CACHE_GROWTH * CACHE_BYTES)


def _ask_each(asking: Asking, names: Iterable[str]) -> None:
    asking.ask_all(lookup(name) for name in names)


def worker_bytes(server: Server, worker: int | None = None) -> int:
    """Return the resident memory (bytes) of a worker, or of the only one, once it no longer changes."""
    time.sleep(SETTLE_S)
    (chosen,) = server.workers() if worker is None else (worker,)
    return int(Path(f"/proc/{chosen}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MAKERS: dict[str, Callable[[Server], Row]] = {IDLE: _idle, CONNECTION: _connection, PAIR: _pair}
