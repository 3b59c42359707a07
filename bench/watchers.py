"""Watchers of `/v1/watch`: memory of each, and how long a change takes until all of them have it.

    python -m bench.watchers [--watchers N] [--changes N] [--workers N]

Starts a name server with an embedded store on all cores, has N connections watch everything as Server-Sent Events,
and changes one topic of a broker over and over, one change when all have the last one. Then the HTTP workers are
replaced (SIGHUP) while changes go on: each watcher has to come back and have every change once. Prints a section of
Markdown; exits 1 where a watcher missed a change or had one twice.
"""

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.asking import Asking
from bench.servers import Server, this_server
from bench.workloads import QUEUES, registration, topic_names, topic_table
from rocketmq_remoting.topic_config import TopicConfig
from testbed.ports import free_port
from testbed.process_tree import command_line, family
from testbed.watchers import Fleet, SseWatcher

TOPICS = 10
PATIENCE_S = 180.0
MB = 1e6


class Received:
    """What all watchers were sent: for each its changes in order; for each change how late it came to each watcher."""

    def __init__(self) -> None:
        self.ids: dict[SseWatcher, list[str]] = {}
        self.late_ms: dict[str, list[float]] = {}
        self.resets = 0

    def take(self, watcher: SseWatcher, kind: str, event_id: str, data: bytes) -> None:
        """Note a message."""
        if kind == "reset":
            self.resets += 1
            return
        self.ids.setdefault(watcher, []).append(event_id)
        recorded_ms = int(event_id.partition("-")[0])
        self.late_ms.setdefault(event_id, []).append(time.time() * 1000 - recorded_ms)


def main() -> None:
    """Measure, print, and exit."""
    parser = argparse.ArgumentParser(prog="python -m bench.watchers")
    parser.add_argument("--watchers", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    sys.exit(0 if _measure(given.watchers, given.changes, given.workers) else 1)


def _measure(watchers: int, changes: int, workers: int) -> bool:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        http = free_port()
        options = {"MQNS_HTTP_PORT": str(http), "MQNS_HTTP_WORKERS": str(workers)}
        options["MQNS_HTTP_MAX_WATCHERS"] = str(2 * watchers)  # one that comes back may be here still
        server = stack.enter_context(
            this_server(free_port(), folder, core=f"0-{(os.cpu_count() or 1) - 1}", options=options)
        )
        asking = stack.enter_context(Asking(server.port))
        change = _Changes(asking)
        change.make()
        received = Received()
        fleet = Fleet("127.0.0.1", http, (SseWatcher("/v1/watch", received.take) for _ in range(watchers)))
        stack.callback(fleet.close)
        before = _http_bytes(server)
        began = time.monotonic()
        if not fleet.run(lambda: fleet.open == watchers, PATIENCE_S):
            raise RuntimeError(f"{fleet.open} of {watchers} watchers have an answer")
        opened_s = time.monotonic() - began
        each = (_http_bytes(server) - before) / watchers
        cpu_s = _http_cpu(server)
        for number in range(1, changes + 1):
            change.make()
            _await_all(fleet, received, watchers, number)
        cpu_s = _http_cpu(server) - cpu_s
        print(f"## Watchers\n\n{_machine()}\n")
        print(f"- {watchers:,} watchers over {workers} HTTP worker(s) were there after {opened_s:.1f} s.")
        print(f"- **Memory** of an HTTP worker for each: {each / 1000:.1f} KB.")
        _print_delays(received, changes, cpu_s, watchers)
        return _reload(server, fleet, received, change, changes)


class _Changes:
    """Registrations of one broker, each with another number of queues of a topic."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._names = list(topic_names(TOPICS))
        self._table = topic_table(TOPICS)
        self._counter = 0

    def make(self) -> None:
        """Make one more change."""
        self._counter += 1
        name, queues = self._names[self._counter % TOPICS], QUEUES + self._counter
        self._table = self._table | {name: TopicConfig(name, queues, queues)}
        self._asking.ask(registration(0, self._table, counter=self._counter))


def _await_all(fleet: Fleet, received: Received, watchers: int, number: int) -> None:
    def all_have() -> bool:
        return len(received.ids) == watchers and all(len(ids) >= number for ids in received.ids.values())

    if not fleet.run(all_have, PATIENCE_S):
        counts = sorted(len(ids) for ids in received.ids.values())
        raise RuntimeError(
            f"change {number}: {len(counts)} watchers, from {counts[:1]} to {counts[-1:]} changes"
        )


def _reload(server: Server, fleet: Fleet, received: Received, change: "_Changes", changes: int) -> bool:
    """Replace the HTTP workers while changes go on; return whether each watcher has each change once."""
    (master,) = [pid for pid in family(server.leader) if "master [mqnamesrv-http]" in command_line(pid)]
    began = time.monotonic()
    os.kill(master, signal.SIGHUP)
    more = 0
    while not fleet.run(lambda: fleet.open == len(fleet.watchers) and _came_back(fleet), 0.1):
        if time.monotonic() - began > PATIENCE_S:
            raise RuntimeError(f"{fleet.open} of {len(fleet.watchers)} watchers came back")
        change.make()
        more += 1
    back_s = time.monotonic() - began
    change.make()
    _await_all(fleet, received, len(fleet.watchers), changes + more + 1)
    expected = max(received.ids.values(), key=len)
    wrong = sum(ids != expected for ids in received.ids.values())
    print(
        f"- **Reload** (SIGHUP): all were back after {back_s:.1f} s, with {more + 1} changes meanwhile; of "
        f"{len(fleet.watchers):,} watchers {wrong} missed a change or had one twice; resets: {received.resets}; "
        f"refused with 503 and back later: {sum(watcher.refused for watcher in fleet.watchers)}."
    )
    return wrong == 0 and received.resets == 0 and len(expected) == changes + more + 1


def _came_back(fleet: Fleet) -> bool:
    return all(watcher.connections > 1 for watcher in fleet.watchers)


def _print_delays(received: Received, changes: int, cpu_s: float, watchers: int) -> None:
    of_all = sorted(ms for late in received.late_ms.values() for ms in late)
    last = sorted(max(late) for late in received.late_ms.values())
    print(
        f"- **Delay** of {changes} changes, from the record in the store until a watcher has it: p50 "
        f"{_at(of_all, 0.5):.0f} ms, p99 {_at(of_all, 0.99):.0f} ms; until the last of all has it: p50 "
        f"{_at(last, 0.5):.0f} ms, p99 {_at(last, 0.99):.0f} ms. The watchers are one process of Python beside it."
    )
    print(f"- CPU of the HTTP workers: {cpu_s / changes / watchers * 1e6:.1f} µs a message.")


def _at(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def _http_workers(server: Server) -> list[int]:
    return [pid for pid in family(server.leader) if "worker [mqnamesrv-http]" in command_line(pid)]


def _http_bytes(server: Server) -> int:
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in _http_workers(server)) * page


def _http_cpu(server: Server) -> float:
    used = server.cpu_seconds_by_process()
    return sum(used[pid] for pid in _http_workers(server))


def _machine() -> str:
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}"
    return f"{machine}, Python {platform.python_version()}."


if __name__ == "__main__":
    main()
