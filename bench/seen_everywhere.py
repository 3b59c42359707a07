"""How long after its acknowledgement a change is in the answers of every other worker."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.asking import Asking, succeeded
from bench.report import Row
from bench.servers import Server, ours
from bench.setting import Setting, free_port
from bench.workloads import QUEUES, lookup, registration, topic_names, topic_table
from remoting.topic_config import TopicConfig

NAME = "a change seen by every worker"
NAMES = (NAME,)
WORKERS = 3
TOPICS = 10
CHANGES = 300
GOAL_MS = 5.0


def seen_everywhere(setting: Setting) -> list[Row]:
    """A broker's registration with one topic changed goes to one worker; from its answer on the others are asked.

    Each change counts the worker that showed it last, from the acknowledgement to the arrival of the first answer with
    the change; so an answer's own way is in it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(
            ours(free_port(), folder / "ours", core=setting.server_core, workers=WORKERS)
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
    """A connection to each worker."""
    found: dict[int, Asking] = {}
    for _ in range(1000):
        one = stack.enter_context(Asking(server.port))
        one.ask(registration(0, topic_table(TOPICS)))  # a connection is a worker's when it has answered
        found.setdefault(server.worker_of(one.socket.getsockname()[1]), one)
        if len(found) == WORKERS:
            return list(found.values())
    raise RuntimeError(f"1000 connections reached {len(found)} of {WORKERS} workers")


def _until_shown(others: list[Asking], frame: bytes, mark: bytes) -> float:
    """ms from now until the last of them shows `mark`; all are asked again and again at the same time."""
    begin = time.perf_counter()
    waiting = others
    while waiting:
        for one in waiting:
            one.send(frame)
        waiting = [one for one in waiting if mark not in succeeded(one.receive()).body]
    return (time.perf_counter() - begin) * 1000


def _row(taken_ms: list[float], setting: Setting) -> Row:
    goal = f"p99 ≤ {GOAL_MS:g} ms"
    if not setting.latencies:
        return Row(NAME, "", "", goal, "no clock good enough", None)
    p50_ms, p99_ms = taken_ms[len(taken_ms) // 2], taken_ms[len(taken_ms) * 99 // 100]
    told = f"{WORKERS} workers, {len(taken_ms)} changes: p50 {p50_ms:.2f}, worst {taken_ms[-1]:.2f} ms"
    return Row(NAME, "", told, goal, f"**{p99_ms:.2f} ms**", p99_ms <= GOAL_MS)
