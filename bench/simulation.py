"""A tenth of 10,000 brokers, a million topics and a million clients on this machine, beside what the model says.

    python -m bench.simulation [--agents N] [--topics N] [--connections N] [--workers N] [--only PHASE ...]

Agents (bench/agents.py) announce brokers at their real schedule, ten to a cluster with the same topics. `steady`:
clients ask for two routes every 30 s over connections to addresses of loopback, as far as files that may be open let
them, and a few brokers change their topics. `restart`: the workers are reloaded (SIGHUP). `store`: the store is killed
and started again. `half`: half as many brokers again register at once, until all are known, then once more. Lookups
that are repeated once, as clients do, are counted in the last three. Prints the tables of docs/scale.md.
"""

import argparse
import asyncio
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import redis
from msgspec import Struct

from bench.agents import IN_A_CLUSTER, MB, brokers
from bench.cost_scene import Used
from bench.fleet import PERIOD_S, Fleet
from bench.generator import Load, Sample, Stream
from bench.report import table_line
from bench.servers import BESIDE, ROLES, STORE, WORKER, Server, role_of, this_server
from bench.setting import Setting, prepare
from bench.slabs import slab_bytes
from bench.workloads import clustered, lookup, topic_changes
from mqnamesrv import costs, size
from mqnamesrv.size import Deployment
from registry.keys import Keys
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.load import Client, Paced
from testbed.ports import free_port

AGENTS, TOPICS, CONNECTIONS, WORKERS, SECONDS = 1_000, 1_000, 100_000, 6, 45.0
OF_A_GENERATOR: Final = 500
"""Connections: no more than the server's backlog (serverSocketBacklog) holds, since all are opened at once."""
OPENED_S: Final = 1800
"""Connections that ask for nothing yet are not closed within this time: that is how long it may take to open all."""
ROUTES_OF_A_CLIENT: Final = 2
CHANGING, CHANGES = 20, 10.0
"""Brokers, and changes a second of all of them."""
PROBES, PROBE_EVERY_S = 20, 0.02
AROUND_S: Final = 5.0
"""Before and after what happens to the server."""
AGAIN_S: Final = 60.0
TRIES: Final = 6
FIRST_OF_HALF: Final = 10_000
"""Number of the first broker of the half that comes at once: no agent has its address."""


class Seen(Struct, frozen=True):
    """A row: what the model says, and what was seen; `failed` of the requests that it counts."""

    what: str
    model: str
    seen: str
    failed: int = 0

    def line(self) -> str:
        """Return it as a line of a table."""
        return table_line((self.what, self.model, self.seen))


class Scene(Struct, frozen=True):
    """A server with its agents, as they were called for."""

    server: Server
    fleet: Fleet
    setting: Setting
    given: argparse.Namespace
    folder: Path


async def steady(on: Scene) -> list[Seen]:
    """Brokers, clients and changes at their rates."""
    before = _memory(on.server)
    slabs = slab_bytes()
    with ExitStack() as stack:
        loads = list(_clients(on, stack))
        for load, mode in loads:
            load.begin(on.given.seconds, mode)
        for load, _ in loads:
            await asyncio.to_thread(load.end)  # once around: routes are cached, connections known
        slabs = slab_bytes() - slabs
        for load, mode in loads:
            load.begin(on.given.seconds, mode)
        began, used = time.monotonic(), on.server.cpu_seconds_by_role()
        wire_before, events_before = _loopback_bytes(), _events(on.server)
        samples = [sample for load, _ in loads for sample in await asyncio.to_thread(load.end)]
        took_s = time.monotonic() - began
        cpu = {role: (now - used[role]) / took_s for role, now in on.server.cpu_seconds_by_role().items()}
        wire = (_loopback_bytes() - wire_before) / took_s
        events = (_events(on.server) - events_before) / took_s
        memory = _memory(on.server)
    print(f"before the clients came: {before}", file=sys.stderr)
    return list(_steady_rows(on, cpu, memory, slabs, wire, events, samples))


def _steady_rows(
    on: Scene,
    cpu: Used,
    memory: Mapping[str, float],
    slabs: float,
    wire: float,
    events: float,
    samples: Sequence[Sample],
) -> Iterator[Seen]:
    given = on.given
    model = size.needs(deployment(given), costs.measured())
    *lookups, _ = samples  # the last are changes
    lost = sum(sample.lost + sample.errors for sample in samples)
    asked = sum(sample.answers for sample in lookups) / given.seconds
    yield Seen("lookups a second", f"{model.load.lookups:,.0f}", f"{asked:,.0f}; {lost} failed")
    for name, said, role in (
        ("CPU of all workers", model.worker_cpu, WORKER),
        ("CPU of Redis", model.store_cpu, STORE),
        ("CPU beside them", model.beside_cpu, BESIDE),
    ):
        yield Seen(name, size.cores(said), size.cores(cpu[role]))
    for name, said, role in (
        ("memory of a worker", model.worker_bytes, WORKER),
        ("memory of Redis without the stream", model.table_bytes, STORE),
        ("memory beside them", model.beside_bytes, BESIDE),
    ):
        yield Seen(name, f"{said / MB:,.0f} MB", f"{memory[role] / MB:,.0f} MB")
    yield Seen("memory of the kernel", f"{model.kernel_bytes / MB:,.0f} MB", f"{slabs / 2 / MB:,.0f} MB")
    yield Seen("network, both ways", size.gbit(model.received + model.sent), size.gbit(wire))
    yield Seen("events a second", f"{model.events_day / size.DAY_S:,.1f}", f"{events:,.1f}")


async def restart(on: Scene) -> list[Seen]:
    """All workers are reloaded, one after the other."""
    old = set(on.server.workers())
    async with _probed(on) as probes:
        registered, begin = on.fleet.counts["Registered"], time.monotonic()
        os.kill(on.server.leader, signal.SIGHUP)
        await _until(lambda: old.isdisjoint(now := on.server.workers()) and len(now) >= len(old))
        new_s = time.monotonic() - begin
        await _until(lambda: on.fleet.counts["Registered"] - registered >= len(on.fleet.agents))
        all_s = time.monotonic() - begin
    return [
        Seen("reload: all workers are new after", "", f"{new_s:.1f} s"),
        Seen("reload: every broker has registered again after", f"{PERIOD_S:g} s at most", f"{all_s:.1f} s"),
        *probes.rows("reload"),
    ]


async def store(on: Scene) -> list[Seen]:
    """The store is killed; the supervisor starts it again, and it loads what it had."""
    with on.server.store() as client:
        pid, pairs = client.info("server")["process_id"], client.info("memory")["used_memory"]
    async with _probed(on) as probes:
        begin = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        await _until(lambda: _answers(on.server))
        back_s = time.monotonic() - begin
        registered = on.fleet.counts["Registered"]
        await _until(lambda: on.fleet.counts["Registered"] - registered >= len(on.fleet.agents))
    return [
        Seen(f"Redis killed: it has loaded {pairs / MB:,.0f} MB after", "", f"{back_s:.1f} s"),
        *probes.rows("Redis killed"),
    ]


async def half(on: Scene) -> list[Seen]:
    """Half as many brokers again register at once: unknown ones, then the same again."""
    count = on.given.agents // 2
    numbers = range(FIRST_OF_HALF, FIRST_OF_HALF + count)
    frames = on.folder / "half"
    frames.write_bytes(b"".join(clustered(numbers, on.given.topics, "half", in_a_cluster=IN_A_CLUSTER)))
    rows: list[Seen] = []
    async with _probed(on) as probes:
        with Load(on.setting.program("load"), on.server.port, [Stream(count, frames)]) as load:
            failed = count
            while failed and len(rows) < TRIES:  # brokers repeat what failed
                rows.append(await _at_once(on, load, f"{count:,} brokers at once, round {len(rows) + 1}"))
                failed = rows[-1].failed
            if not failed:
                rows += await _known(on, load, count)
    return [*rows, *probes.rows("at once")]


async def _known(on: Scene, load: Load, count: int) -> list[Seen]:
    """Register once more what is registered, and compare the CPU."""
    used = on.server.cpu_seconds_by_role()
    rows = [await _at_once(on, load, f"{count:,} known brokers at once")]
    after = on.server.cpu_seconds_by_role()
    for role in ROLES:
        said = count * getattr(costs.measured().unchanged, role).at(on.given.topics) / size.US
        seen = after[role] - used[role]
        rows.append(Seen(f"{count:,} known brokers: CPU, {role}", f"{said:.1f} s", f"{seen:.1f} s"))
    return rows


async def _at_once(on: Scene, load: Load, what: str) -> Seen:
    (sample,) = await asyncio.to_thread(load.run, 1.0, "0=once")
    failed = sample.errors + sample.lost
    await asyncio.sleep(AROUND_S)
    return Seen(what, "", f"{sample.seconds:.1f} s; {failed} failed", failed)


PHASES: Final = {phase.__name__: phase for phase in (steady, restart, store, half)}


def deployment(given: argparse.Namespace) -> Deployment:
    """Return what is simulated, for the model. The brokers that change topics ask for no list of brokers."""
    number = given.agents + CHANGING
    topics = given.agents // IN_A_CLUSTER * given.topics + given.topics
    return Deployment(
        number,
        topics,
        given.connections,
        brokers_per_topic=number * given.topics / topics,
        topics_per_client=ROUTES_OF_A_CLIENT,
        changes_per_second=CHANGES,
        cluster_info_seconds=5 * number / given.agents,
        workers=given.workers,
    )


class Probes:
    """Lookups of some clients, each repeated once after a connection that was closed."""

    def __init__(self, on: Scene) -> None:
        topics = list(topic_names(on.given))
        chosen = random.Random(1).sample(topics, min(PROBES, len(topics)))
        self._paced = [
            Paced(
                Client(on.server.port),
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                {"topic": topic},
                every_s=PROBE_EVERY_S,
                start_s=PROBE_EVERY_S * place / len(chosen),
            )
            for place, topic in enumerate(chosen)
        ]
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Ask until `end`."""
        await asyncio.gather(*(paced.run(self._over) for paced in self._paced))

    def end(self) -> None:
        """Let the clients end with their next reply."""
        self._over.set()

    def rows(self, during: str) -> Iterator[Seen]:
        """Yield what came of them."""
        codes = Counter[str]()
        for paced in self._paced:
            for (code, _), count in paced.answers.items():
                codes[ResponseCode(code).name] += count
            codes["no answer"] += len(paced.failures)
        good = codes.pop(ResponseCode.SUCCESS.name, 0)
        others = ", ".join(f"{count:,} {name}" for name, count in codes.items() if count)
        yield Seen(f"{during}: lookups of {good + codes.total():,} that had no route", "0", others or "0")
        shown = [
            {body for code, body in paced.answers if code == ResponseCode.SUCCESS} for paced in self._paced
        ]
        changed = sum(len(bodies) > 1 for bodies in shown)
        yield Seen(f"{during}: routes that changed", "0", f"{changed} of {len(shown)}")


@asynccontextmanager
async def _probed(on: Scene) -> AsyncIterator[Probes]:
    """Lookups that begin a while before the block and end a while after it."""
    probes = Probes(on)
    task = asyncio.create_task(probes.run())
    await asyncio.sleep(AROUND_S)
    try:
        yield probes
        await asyncio.sleep(AROUND_S)
    finally:
        probes.end()
        await task


def topic_names(given: argparse.Namespace) -> Iterator[str]:
    """Yield the names of the agents' topics."""
    for config in brokers(given.agents, given.topics, "127.0.0.1:1"):
        if config.broker_name.endswith("0"):  # ten in a row have the same
            yield from (topic.topic_name for topic in config.topics)


def _clients(on: Scene, stack: ExitStack) -> Iterator[tuple[Load, str]]:
    """Yield generators with their modes: those of lookups, each at an address of its own, and one of changes."""
    given, rng = on.given, random.Random(1)
    topics = list(topic_names(given))
    program = on.setting.program("load")
    for place, first in enumerate(range(0, given.connections, OF_A_GENERATOR)):
        count = min(OF_A_GENERATOR, given.connections - first)
        file = on.folder / f"lookups-{place}"
        file.write_bytes(b"".join(map(lookup, rng.choices(topics, k=ROUTES_OF_A_CLIENT * count))))
        host = f"127.0.{1 + place}.1"
        load = stack.enter_context(Load(program, on.server.port, [Stream(count, file)], host=host))
        load.run(0.01, "0=open:1")  # once it has opened its connections
        yield load, f"0=open:{count * ROUTES_OF_A_CLIENT / PERIOD_S}"
    file = on.folder / "changes"
    file.write_bytes(b"".join(topic_changes(CHANGING, given.topics, 1)))
    yield stack.enter_context(Load(program, on.server.port, [Stream(CHANGING, file)])), f"0=open:{CHANGES}"


def _memory(server: Server) -> dict[str, float]:
    """Return bytes: of a worker (their mean), of the store as it counts without the stream, of all others together."""
    of = dict.fromkeys(ROLES, 0.0)
    for name, rss in server.rss_bytes().items():
        of[role_of(int(name.rpartition(" ")[2]))] += rss
    with server.store() as store:
        tables = store.info("memory")["used_memory"] - (store.memory_usage(Keys().events, samples=0) or 0)
    return {**of, WORKER: of[WORKER] / len(server.workers()), STORE: tables}


def _events(server: Server) -> int:
    with server.store() as store:
        return int(store.xinfo_stream(Keys().events)["entries-added"])


def _loopback_bytes() -> int:
    line = next(
        line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:")
    )
    return int(line.split()[1])


def _answers(server: Server) -> bool:
    try:
        with server.store() as store:
            return bool(store.ping())
    except (OSError, redis.RedisError):
        return False


async def _until(look: Callable[[], bool]) -> None:
    """Wait until it is so; TimeoutError after AGAIN_S."""
    async with asyncio.timeout(AGAIN_S):
        while not look():
            await asyncio.sleep(0.05)


async def simulated(server: Server, setting: Setting, given: argparse.Namespace, folder: Path) -> list[Seen]:
    """Return the rows of the chosen phases."""
    configs = list(brokers(given.agents, given.topics, f"127.0.0.1:{server.port}"))
    rows: list[Seen] = []
    async with Fleet(configs) as fleet:
        on = Scene(server, fleet, setting, given, folder)
        for name in given.only:
            rows += await PHASES[name](on)
            print("\n".join(row.line() for row in rows), file=sys.stderr, flush=True)
        failures = dict(fleet.failures)
    return [*rows, Seen("requests of agents that failed, and were repeated", "", f"{failures or 'none'}")]


def main() -> None:
    """Run the simulation and print its rows."""
    parser = argparse.ArgumentParser(description="a tenth of a large deployment, beside the model")
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--topics", type=int, default=TOPICS, help="of each cluster of ten agents")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="of clients")
    parser.add_argument("--workers", type=int, default=WORKERS, help="remoting workers")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of the steady phase, which is run twice"
    )
    parser.add_argument("--only", nargs="+", choices=PHASES, default=list(PHASES))
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    cores = sorted(os.sched_getaffinity(0))
    options = {"MQNS_BIND_ADDRESS": "0.0.0.0", "MQNS_SERVER_CHANNEL_MAX_IDLE_TIME_SECONDS": str(OPENED_S)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        setting = prepare(folder, rounds=1, seconds=given.seconds, warm_up_s=0)
        both = ",".join(map(str, cores))
        with this_server(
            free_port(), folder / "server", core=both, workers=given.workers, options=options
        ) as server:
            rows = asyncio.run(simulated(server, setting, given, folder))
    print(table_line(("of", "model", "seen")), "|---|---|---|", *(row.line() for row in rows), sep="\n")


if __name__ == "__main__":
    main()
