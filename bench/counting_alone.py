"""What counting costs where requests are answered by their bytes (ns of a request): `bench.counting` without a server.

    python -m bench.counting_alone [--starts N]

Other processes of the same program, and the system under them, differ by more than counting costs. So this calls the
one function that answers such requests, in copies of this tree that count and that do not (`bench.uncounted`), each in
a process of its own, by rotation. A figure is the median over the starts of the least time; the last column is the
median of the differences."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from timeit import repeat

from bench.report import processor
from bench.uncounted import copied
from bench.workloads import data_version_queries, heartbeats, lookups, unchanged
from registry.options.catalogue import Options
from registry.plans import ScriptItem
from registry.registration.renewals import Renewal, Renewals
from rocketmq_remoting.command import decode
from worker.cache.cached_registrations import CachedRegistrations
from worker.cache.cached_requests import Answers
from worker.cache.routes import RouteCache
from worker.cache.views import cache_key
from worker.counters import Counters
from worker.guard import Guard
from worker.reply import Reply
from worker.transport.cached_answers import cached_answers

CALLS, TIMES = 5_000, 60
MOST = 1 << 20
ROUTE_BYTES = 500
RENEWED = Reply(renewal=Renewal(ScriptItem("none", (), (), ("m",)), ["renewed"], inf))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="what counting costs, without a server")
    parser.add_argument("--starts", type=int, default=10, help="times that each copy is started")
    starts = parser.parse_args().starts
    with tempfile.TemporaryDirectory() as scratch:
        copied(Path(scratch) / "without")
        copied(Path(scratch) / "with", cuts={})
        measured = {side: defaultdict[str, list[float]](list) for side in ("without", "with")}
        for number in range(starts):
            for side in sorted(measured, reverse=bool(number % 2)):
                for name, ns in _in_copy(Path(scratch) / side).items():
                    measured[side][name].append(ns)
    print(f"{os.cpu_count()} cores, {processor()}; {starts} starts.\n")
    print("\n".join(_table(measured["without"], measured["with"])))


def _table(without: Mapping[str, Sequence[float]], counted: Mapping[str, Sequence[float]]) -> Iterator[str]:
    yield "| answered by its bytes | without counting, ns | with | counting |"
    yield "|---|---|---|---|"
    for name, most in counted.items():
        differences = [ours - other for ours, other in zip(most, without[name], strict=True)]
        figures = map(statistics.median, (without[name], most, differences))
        yield f"| {name} | {' | '.join(f'{ns:,.0f}' for ns in figures)} |"


def _in_copy(folder: Path) -> dict[str, float]:
    """Return `measure` of the copy there."""
    code = "import json; from bench.counting_alone import measure; print(json.dumps(measure()))"
    printed = subprocess.check_output(
        [sys.executable, "-c", code], cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}
    )
    return dict(json.loads(printed))


def measure() -> dict[str, float]:
    """Return the least time (ns) of a request of each kind in this tree."""
    return {
        name: min(repeat(call, number=CALLS, repeat=TIMES)) / CALLS * 1e9 for name, call in _calls().items()
    }


def _calls() -> Mapping[str, Callable[[], Answers]]:
    options, counters = Options(), Counters()
    renewals, proves = Renewals(lambda: 0.0), Guard(options, counters).proves
    registrations = CachedRegistrations(lambda: 0.0, counters, proves)
    registrations.set_connection("1", options)
    routes = RouteCache(MOST, counters, registrations.find)
    kept = {
        "lookup": lookups(1)[0],
        "heartbeat (904)": next(heartbeats(1)),
        "data-version query (322)": next(data_version_queries(1)),
        "unchanged registration, 10 topics": next(unchanged(1, 10, 1)),
    }
    for name, frame in kept.items():
        command = decode(frame[4:])
        if (key := cache_key(command, options)) is not None:
            routes.requests.keep_lookup(key, frame, command, Reply(body=bytes(ROUTE_BYTES)), renewals)
        elif "registration" in name:
            registrations.keep(frame, command, RENEWED, renewals, "1", options)
        else:
            routes.requests.keep(frame, command, RENEWED, renewals)
    for cached in (*routes.requests.replies.entries.values(), *registrations.replies.entries.values()):
        cached.until = inf
    calls: dict[str, Callable[[], Answers]] = {
        name: partial(cached_answers, routes.requests, frame, 0.0, MOST) for name, frame in kept.items()
    }
    for name, call in calls.items():
        blocks, length, checks = call()
        if not blocks or checks:
            raise RuntimeError(f"{name} is not answered by its bytes: {length} bytes, {len(checks)} checks")
    return calls


if __name__ == "__main__":
    main()
