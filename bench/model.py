"""The costs that `mqnamesrv size` reckons with: each measured at three sizes beside a running server, and fitted.

    python -m bench.model [--keep FOLDER] [--only PART ...] [--rounds N] [--seconds S]

A server with one remoting worker and its store has one core, the load the other one. A cost is the CPU time of the
server's processes for each request of an open loop, beside lookups that keep the worker in use as a sized one is
(bench/cost_scene.py). Parts that are kept in FOLDER are not measured again, so that a run may be ended and taken up;
once all are there, mqnamesrv/costs.json is written, and the table of docs/scale.md is printed.
"""

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.asking import Asking
from bench.cost_scene import Stage, Used, cpu, each_second, stage
from bench.fitted import fitted
from bench.memory import worker_bytes
from bench.report import LIBRARIES, processor, table_line
from bench.servers import BESIDE, role_of
from bench.setting import Setting, prepare
from bench.slabs import slab_bytes
from bench.workloads import (
    cluster_info,
    data_version_queries,
    heartbeats,
    lookup,
    lookups,
    registered,
    registration,
    topic_changes,
    topic_table,
    unchanged,
)
from mqnamesrv.costs import FILE, Conditions, Costs, Cpu, Line
from rocketmq_remoting.typed import converted, decoded

TABLES: Final = (10, 100, 1_000)
"""Topics of a broker."""
TABLE_BROKERS, TABLE_RATE, CHANGE_ROUNDS, SAME_ROUNDS = 200, 150.0, 1, 3
ROUTES: Final = (1, 8, 64)
"""Brokers of a route."""
ROUTE_TOPICS, LOOKUP_RATE, MISSED_RATE, CLIENTS = 5_000, 10_000.0, 1_000.0, 200
ALL_ROUTES, FEW_ROUTES = 1 << 30, 1 << 16
"""Bytes of a route cache that holds all that is asked, and of one that forgets each before it is asked again."""
CLUSTERS: Final = ((100, 4_000.0), (1_000, 1_500.0), (3_000, 500.0))
"""Brokers of a name server, and how often a second they are asked for: as often as the wire bears it."""
HEARTBEAT_BROKERS, HEARTBEAT_RATES = 600, (150.0, 600.0, 2_400.0)
"""Brokers, and their heartbeats a second."""
WORKERS: Final = (1, 2, 4)
CONNECTIONS: Final = (2_000, 5_000, 10_000)
LANDED: Final = (6, 24, 96)
"""Copies of the history of bench/pipeline_landing.py."""
BATCH: Final = re.compile(r"batch \d+: (\d+) events, \S+ a second, (\S+) a CPU-second")

Part = Mapping[str, Any]
"""Fields of Costs."""


def tables(setting: Setting) -> Part:
    """Registrations, by topics of the table."""
    first, changes, same, idle, events = [], [], [], [], []
    wire = []
    for topics in TABLES:
        with stage(setting, registered(TABLE_BROKERS, topics)()) as on:
            first.append((topics, on.first))
            wire.append((topics, len(registration(0, topic_table(topics)))))
            frames = partial(unchanged, TABLE_BROKERS, topics, SAME_ROUNDS)
            idle.append((TABLE_BROKERS * topics, on.idle()))
            same.append((topics, on.cost(frames, TABLE_RATE, TABLE_BROKERS)))
            before, bytes_before = on.events(), on.event_bytes()
            frames = partial(topic_changes, TABLE_BROKERS, topics, CHANGE_ROUNDS)
            changes.append((topics, on.cost(frames, TABLE_RATE, TABLE_BROKERS)))
            made = TABLE_RATE * (setting.seconds * setting.rounds + setting.warm_up_s)
            events.append((topics, (on.events() - before) / made, (on.event_bytes() - bytes_before) / made))
    return {
        "first": cpu(first),
        "change": cpu(changes),
        "unchanged": cpu(same),
        "idle": cpu(idle),
        "registration_bytes": fitted(wire),
        "events": fitted([(topics, entries) for topics, entries, _ in events]),
        "event_bytes": fitted([(topics, size) for topics, _, size in events]),
    }


def liveness(setting: Setting) -> Part:
    """Heartbeats 904 and 322, each written, by their rate."""
    measured: dict[str, list[tuple[float, Used]]] = {"heartbeat": [], "version_query": []}
    with stage(setting, registered(HEARTBEAT_BROKERS, 2)()) as on:
        for name, frames in (("heartbeat", heartbeats), ("version_query", data_version_queries)):
            for rate in HEARTBEAT_RATES:
                used = on.cost(partial(frames, HEARTBEAT_BROKERS), rate, CLIENTS)
                measured[name].append((rate, each_second(rate, used)))
    return {name: cpu(points) for name, points in measured.items()}


def routes(setting: Setting) -> Part:
    """Lookups and routes, by brokers of the route."""
    found: dict[str, list[tuple[float, Any]]] = {name: [] for name in ("lookup", "missed", "wire", "store")}
    asked = lookups(ROUTE_TOPICS)
    for brokers in ROUTES:
        with stage(setting, (), options={"MQNS_ROUTE_CACHE_BYTES": str(ALL_ROUTES)}) as on:
            empty = on.store_bytes()
            on.asking.ask_all(registered(brokers, ROUTE_TOPICS)())
            found["store"].append((brokers, (on.store_bytes() - empty) / ROUTE_TOPICS))
            found["wire"].append((brokers, len(on.asking.ask_raw(asked[0]))))
            found["lookup"].append((brokers, on.cost(lambda: asked, LOOKUP_RATE, CLIENTS)))
        options = {"MQNS_ROUTE_CACHE_BYTES": str(FEW_ROUTES)}
        with stage(setting, registered(brokers, ROUTE_TOPICS)(), options=options) as on:
            found["missed"].append((brokers, on.cost(lambda: asked, MISSED_RATE, CLIENTS)))
    return {
        "lookup": cpu(found["lookup"]),
        "missed": cpu(found["missed"]),
        "route_bytes": fitted(found["wire"]),
        "topic_store": fitted(found["store"]),
    }


def cached(setting: Setting) -> Part:
    """Routes in a worker, by their brokers: one of two, since what registrations leave free would be used for them."""
    points = []
    options = {"MQNS_ROUTE_CACHE_BYTES": str(ALL_ROUTES)}
    for brokers in ROUTES:
        with (
            stage(setting, registered(brokers, ROUTE_TOPICS)(), workers=2, options=options) as on,
            ExitStack() as stack,
        ):
            registering = on.server.worker_of(on.asking.socket)
            while (worker := on.server.worker_of((other := _asking(on, stack)).socket)) == registering:
                pass
            before = worker_bytes(on.server, worker)
            for frame in lookups(ROUTE_TOPICS):  # one by one: equal routes of one read share their bytes
                other.ask(frame)
            points.append((brokers, (worker_bytes(on.server, worker) - before) / ROUTE_TOPICS))
    return {"topic_worker": fitted(points)}


def _asking(on: Stage, stack: ExitStack) -> Asking:
    """Return a connection that a worker has accepted."""
    asking = stack.enter_context(Asking(on.server.port))
    asking.ask(lookup("bench_topic_000000"))
    return asking


def clusters(setting: Setting) -> Part:
    """The list of all brokers, by their number."""
    costs, wire, memory = [], [], []
    for brokers, rate in CLUSTERS:
        with stage(setting, ()) as on:
            empty = on.store_bytes()
            on.asking.ask_all(registered(brokers, 2)())
            memory.append((brokers, on.store_bytes() - empty))
            wire.append((brokers, len(on.asking.ask_raw(cluster_info()[0]))))
            costs.append((brokers, on.cost(cluster_info, rate, CLIENTS)))
    return {"cluster_info": cpu(costs), "cluster_info_bytes": fitted(wire), "broker_store": fitted(memory)}


def followers(setting: Setting) -> Part:
    """Changes, by the workers that follow them."""
    points = []
    for workers in WORKERS:
        with stage(setting, registered(TABLE_BROKERS, TABLES[0])(), workers=workers) as on:
            frames = partial(topic_changes, TABLE_BROKERS, TABLES[0], CHANGE_ROUNDS)
            points.append((workers, on.cost(frames, TABLE_RATE, TABLE_BROKERS)))
    return {"following": cpu(points)}


def resting(setting: Setting) -> Part:
    """A second without requests, by workers."""
    points = []
    for workers in WORKERS:
        with stage(setting, registered(TABLE_BROKERS, TABLES[0])(), workers=workers) as on:
            points.append((workers, on.idle()))
    return {"resting": cpu(points)}


def connections(setting: Setting) -> Part:
    """Connections that have asked once. The kernel's part is half of what its slabs grow by: the load has as many."""
    worker, kernel = [], []
    with stage(setting, registered(4, 10)()) as on, ExitStack() as stack:
        on.asking.ask(lookup("bench_topic_000000"))
        empty, slabs = worker_bytes(on.server), slab_bytes()
        beside = sum(_beside_bytes(on))
        opened = 0
        for count in CONNECTIONS:
            for _ in repeat(None, count - opened):
                _asking(on, stack)
            opened = count
            worker.append((count, worker_bytes(on.server)))
            kernel.append((count, max(slab_bytes() - slabs, 0) / 2))
    return {
        "connection_worker": fitted([(0.0, empty), *worker]),
        "connection_kernel": fitted(kernel),
        "beside_bytes": float(beside),
    }


def _beside_bytes(on: Stage) -> Iterator[int]:
    for name, size in on.server.rss_bytes().items():
        if role_of(int(name.rpartition(" ")[2])) == BESIDE:
            yield size


def landing(setting: Setting) -> Part:
    """What the pipeline takes to land entries, by their number: its first batch warms Spark up, the second counts."""
    points = []
    for copies in LANDED:
        command = [
            sys.executable,
            "-m",
            "mqnamesrv.throwaway",
            sys.executable,
            "-m",
            "bench.pipeline_landing",
        ]
        said = subprocess.check_output([*command, "--copies", str(copies), "--batches", "2"], text=True)
        entries, rate = (float(word.replace(",", "")) for word in BATCH.findall(said)[1])
        points.append((entries, entries / rate))
    return {"landing": fitted(points)}


PARTS: Final[Mapping[str, Callable[[Setting], Part]]] = {
    part.__name__: part
    for part in (tables, liveness, routes, cached, clusters, followers, resting, connections, landing)
}


def main() -> None:
    """Measure what is missing, and write the costs once nothing is."""
    parser = argparse.ArgumentParser(description="what each kind of work costs")
    parser.add_argument("--keep", type=Path, help="folder of what was measured so far")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    parser.add_argument("--rounds", type=int, default=9, help="runs of a load, each beside one without it")
    parser.add_argument("--seconds", type=float, default=1.3, help="length of a run")
    parser.add_argument("--warm-up", type=float, default=1.0, help="seconds of it before")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kept = given.keep or Path(scratch)
        kept.mkdir(exist_ok=True)
        setting = prepare(Path(scratch), rounds=given.rounds, seconds=given.seconds, warm_up_s=given.warm_up)
        for name in given.only:
            if not (file := kept / f"{name}.json").exists():
                file.write_bytes(msgspec.json.encode(PARTS[name](setting)))
                print(f"{name}: measured", file=sys.stderr, flush=True)
        files = [kept / f"{name}.json" for name in PARTS]
        if not all(file.exists() for file in files):
            return
        costs = together(decoded(file.read_bytes(), dict[str, Any]) for file in files)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(costs), indent=1) + b"\n")
    print("\n".join(cost_lines(costs)))


def together(parts: Iterable[Part]) -> Costs:
    """Return the costs of these parts, measured on this machine today."""
    fields = {name: value for part in parts for name, value in part.items()}
    return converted({"conditions": msgspec.to_builtins(conditions()), **fields}, Costs)


def conditions() -> Conditions:
    """Return what this machine is, and what runs on it."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    redis = subprocess.check_output(["redis-server", "--version"], text=True).split("v=")[1].split()[0]
    return Conditions(
        f"{os.cpu_count()} cores, {processor()}, Linux {platform.release()}",
        f"redis-namesrv {version('redis-namesrv')}, Redis {redis}, Python {platform.python_version()}, {libraries}",
        datetime.date.today().isoformat(),
    )


def cost_lines(costs: Costs) -> Iterator[str]:
    """Yield a Markdown table of the costs: what was measured, and the line through it."""
    yield f"{costs.conditions.machine}; {costs.conditions.versions}; {costs.conditions.measured}."
    yield ""
    yield table_line(("cost", "of", "at", "measured", "fixed", "for each"))
    yield "|" + "---|" * 6
    for name in costs.__struct_fields__:
        match getattr(costs, name):
            case Cpu() as used:
                for role in used.__struct_fields__:
                    yield _line(name, role, getattr(used, role))
            case Line() as line:
                yield _line(name, "", line)


def _line(name: str, role: str, line: Line) -> str:
    sizes = ", ".join(f"{size:,.0f}" for size, _ in line.points)
    costs = ", ".join(f"{cost:,.5g}" for _, cost in line.points)
    return table_line((f"`{name}`", role, sizes, costs, f"{line.fixed:,.4g}", f"{line.each:,.4g}"))


if __name__ == "__main__":
    main()
