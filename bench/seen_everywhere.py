"""The time from the acknowledgement of a change until every other worker's replies show it."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.asking import Asking, succeeded
from bench.report import Row
from bench.servers import Server, this_server
from bench.setting import Setting
from bench.workloads import QUEUES, lookup, registration, topic_names, topic_table
from rocketmq_remoting.topic_config import TopicConfig
from testbed.ports import free_port

NAME = "a change seen by every worker"
NAMES = (NAME,)
WORKERS = 3
TOPICS = 10
CHANGES = 300
GOAL_MS = 5.0


def seen_everywhere(setting: Setting) -> list[Row]:
    """Register a broker with one changed topic over one worker, then look it up at the others until all show it.

    Each change counts the worker that showed it last, from the acknowledgement to the arrival of the first reply with
    the change; so a reply's own way is in it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(
            this_server(free_port(), folder / "ours", core=setting.server_core, workers=WORKERS)
        )
        first, *others = _one_of_each(server, stack)
        names, table = list(topic_names(TOPICS)), topic_table(TOPICS)
        first.ask(registration(0, table))
        taken_ms = []
        for change in range(CHANGES):
            name = names[change % TOPICS]
            queues = QUEUES + 1 + change
            table = table | {name: TopicConfig(name, queues, queues)}
            first.ask(registration(0, table, counter=2 + change))
            taken_ms.append(_until_shown(others, lookup(name), f'"writeQueueNums":{queues}'.encode()))
    return [_row(sorted(taken_ms), setting)]


def _one_of_each(server: Server, stack: ExitStack) -> list[Asking]:
    """Return a connection to each worker."""
    connections: dict[int, Asking] = {}
    for _ in range(1000):
        one = stack.enter_context(Asking(server.port))
        one.ask(registration(0, topic_table(TOPICS)))  # a connection is a worker's when it has answered
        connections.setdefault(server.worker_of(one.socket), one)
        if len(connections) == WORKERS:
            return list(connections.values())
    raise RuntimeError(f"1000 connections reached {len(connections)} of {WORKERS} workers")


def _until_shown(others: list[Asking], frame: bytes, signature: bytes) -> float:
    """Return the ms until the last of them shows `signature`; all are asked at the same time, again and again."""
    begin = time.perf_counter()
    waiting = others
    while waiting:
        for connection in waiting:
            connection.send(frame)
        waiting = [other for other in waiting if signature not in succeeded(other.receive()).body]
    return (time.perf_counter() - begin) * 1000


def _row(taken_ms: list[float], setting: Setting) -> Row:
    goal = f"p99 ≤ {GOAL_MS:g} ms"
    if not setting.latencies:
        return Row(NAME, "", "", goal, "no clock good enough", None)
    p50_ms, p99_ms = taken_ms[len(taken_ms) // 2], taken_ms[len(taken_ms) * 99 // 100]
    text = f"{WORKERS} workers, {len(taken_ms)} changes: p50 {p50_ms:.2f}, worst {taken_ms[-1]:.2f} ms"
    return Row(NAME, "", text, goal, f"**{p99_ms:.2f} ms**", p99_ms <= GOAL_MS)
