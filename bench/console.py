"""The console with many brokers and topics: how long each page takes on the server, and in Chromium until it is useful.

    python -m bench.console [--brokers N] [--topics N] [--times N]

Starts a name server with an embedded store on all cores and registers brokers that all have the same topics. Asks for
each page over one connection; then has Chromium, with an empty cache each time, open it: `useful` is when all of the
page is parsed, its scripts have run, and it was painted. Prints a table of Markdown; exits 1 where a page took longer
than its goal at the median."""

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import httpx

from bench.asking import Asking
from bench.servers import this_server
from bench.workloads import registered, topic_names
from testbed.browsing import Chromium, chromium
from testbed.ports import free_port

SERVER_MS = 100.0
USEFUL_MS = 1000.0
DAY_MS = 86_400_000
PATIENCE_S = 60.0
PAGES = (
    "",
    "brokers",
    "brokers/broker-007",
    "drains",
    "topics",
    "topics?prefix=bench_topic_0005",
    "topics?cluster=bench",
    "topics/{topic}",
    "events",
    "events/between",
    "audit",
    "findings",
    "reports",
    "history",
    "kv",
    "settings",
    "settings?all=1",
    "login",
)
"""Below `/console`."""


class Times(NamedTuple):
    """Of a page, in ms."""

    server: float
    slowest: float
    useful: float
    size: int


def main() -> None:
    """Measure, print, and exit."""
    parser = argparse.ArgumentParser(prog="python -m bench.console")
    parser.add_argument("--brokers", type=int, default=1000)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--times", type=int, default=11)
    given = parser.parse_args()
    with ExitStack() as stack:
        url = _served(stack, given.brokers, given.topics)
        browser = stack.enter_context(chromium())
        print(
            f"## The console, {given.brokers:,} brokers with {given.topics:,} topics each\n\n{_machine()}\n"
        )
        print("| page | server, ms: median | slowest | useful in Chromium, ms | KB |\n|---|---|---|---|---|")
        times = {page: _times(url, page, browser, given.times) for page in _pages(given.topics)}
    for page, taken in times.items():
        figures = (taken.server, taken.slowest, taken.useful, taken.size / 1000)
        print(f"| `/console/{page}` | {' | '.join(f'{figure:.0f}' for figure in figures)} |")
    late = [
        f"/console/{page}"
        for page, taken in times.items()
        if taken.server > SERVER_MS or taken.useful > USEFUL_MS
    ]
    print(f"\nPages beyond {SERVER_MS:.0f} ms or {USEFUL_MS:.0f} ms: {', '.join(late) or 'none'}.")
    sys.exit(1 if late else 0)


def _served(stack: ExitStack, brokers: int, topics: int) -> str:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    http = free_port()
    options = {"MQNS_HTTP_PORT": str(http), "MQNS_BROKER_TIMEOUT_MILLIS": str(DAY_MS)}
    server = stack.enter_context(
        this_server(free_port(), folder, core=f"0-{(os.cpu_count() or 1) - 1}", options=options)
    )
    asking = stack.enter_context(Asking(server.port))  # open as long as the brokers are to live
    began = perf_counter()
    asking.ask_all(registered(brokers, topics)())
    print(f"registered in {perf_counter() - began:.0f} s", file=sys.stderr)
    return f"http://127.0.0.1:{http}"


def _pages(topics: int) -> Iterator[str]:
    first = next(topic_names(topics))
    return (page.format(topic=first) for page in PAGES)


def _times(url: str, page: str, browser: Chromium, times: int) -> Times:
    target = f"{url}/console/{page}".rstrip("/")
    taken: list[float] = []
    size = 0
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
        for _ in range(times + 1):  # the first one has templates compiled
            began = perf_counter()
            answer = client.get(target)
            taken.append((perf_counter() - began) * 1000)
            answer.raise_for_status()
            size = len(answer.content)
    return Times(statistics.median(taken[1:]), max(taken[1:]), _useful_ms(browser, target, times), size)


def _useful_ms(browser: Chromium, target: str, times: int) -> float:
    return statistics.median(browser.useful_ms(target) for _ in range(times))


def _machine() -> str:
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}"
    return f"{machine}, Python {platform.python_version()}."


if __name__ == "__main__":
    main()
