"""Many lookups at once on a worker with an empty cache: its rate, and the requests to the store."""

import statistics
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import msgspec
import redis

from bench.asking import Asking
from bench.generator import Load, Sample, Stream
from bench.java import java_name_server
from bench.report import Row, spread
from bench.servers import this_server
from bench.setting import Setting
from bench.workloads import lookup, registered, topic_names
from testbed.ports import free_port

NAME = "cold start: 5,000 topics asked at once of an empty cache"
STAMPEDE = "cold start: the same, each by 10 clients"
NAMES = (NAME, STAMPEDE)
TOPICS, BROKERS, CONNECTIONS = 5_000, 4, 200
ASKERS = 10
READS_A_TOPIC = 1.1  # hashes: its own, and its brokers' with each call; a stampede would be ten
HASHES = "cmdstat_hgetall"
SCRIPTS = ("cmdstat_evalsha", "cmdstat_evalsha_ro", "cmdstat_fcall", "cmdstat_fcall_ro")


class StoreReads(msgspec.Struct, frozen=True):
    """Scripts that a store has run, and hashes that it has read whole."""

    scripts: int
    hashes: int


def cold_starts(setting: Setting) -> list[Row]:
    """Return the rows: the rate of the burst against Java's, warm, and the number of requests to the store."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        once = _written(folder / "once", topic_names(TOPICS))
        often = _written(folder / "often", (name for _ in range(ASKERS) for name in topic_names(TOPICS)))
        java = _java(setting, once, folder)
        cold = [_cold(setting, once, folder / f"cold-{turn}") for turn in range(setting.rounds)]
        crowd, crowd_asked = _cold(setting, often, folder / "crowd")
    java_rate = statistics.median(sample.per_second for sample in java)
    rate = statistics.median(sample.per_second for sample, _ in cold)
    scripts = max(asked.scripts for _, asked in cold)
    return [
        Row(
            NAME,
            f"warm: {spread([sample.per_second for sample in java])} a second",
            f"{spread([sample.per_second for sample, _ in cold])} a second, {scripts:,} scripts in the store",
            "≥ Java's warm rate",
            f"**{rate / java_rate:.2f} times**",
            rate >= java_rate,
        ),
        Row(
            STAMPEDE,
            "",
            f"{crowd.answers:,} answers, {crowd.per_second:,.0f} a second",
            "no store stampede: each topic read once",
            f"**{crowd_asked.hashes:,} hashes read** for {TOPICS:,} topics, in {crowd_asked.scripts:,} scripts",
            crowd_asked.hashes <= READS_A_TOPIC * TOPICS,
        ),
    ]


def _java(setting: Setting, frames: Path, folder: Path) -> list[Sample]:
    core, port = setting.server_core, free_port()
    with (
        java_name_server(port, folder / "java", core=core) as server,
        Asking(port) as asking,
        Load(setting.program("load"), server.port, [Stream(CONNECTIONS, frames)]) as load,
    ):
        asking.ask_all(registered(BROKERS, TOPICS)())
        load.run(setting.warm_up_s, "0=closed:1")
        return [_burst(load) for _ in range(setting.rounds)]


def _cold(setting: Setting, frames: Path, folder: Path) -> tuple[Sample, StoreReads]:
    """Return the sample of one burst of first lookups, and the scripts and hash reads of the store."""
    with (
        this_server(free_port(), folder, core=setting.server_core) as server,
        Asking(server.port) as asking,
        Load(setting.program("load"), server.port, [Stream(CONNECTIONS, frames)]) as load,
        server.store() as store,
    ):
        asking.ask_all(registered(BROKERS, TOPICS)())
        before = _store_reads(store)
        sample = _burst(load)
        after = _store_reads(store)
        return sample, StoreReads(after.scripts - before.scripts, after.hashes - before.hashes)


def _burst(load: Load) -> Sample:
    (sample,) = load.run(0, "0=once")
    if sample.errors or sample.lost:
        raise RuntimeError(f"{NAME}: {sample.errors} errors, {sample.lost} lost")
    return sample


def _store_reads(store: redis.Redis) -> StoreReads:
    """Return what the store has done so far."""
    counts = store.info("commandstats")
    calls = {name: counts[name]["calls"] for name in (*SCRIPTS, HASHES) if name in counts}
    return StoreReads(sum(calls.get(name, 0) for name in SCRIPTS), calls.get(HASHES, 0))


def _written(path: Path, topics: Iterable[str]) -> Path:
    path.write_bytes(b"".join(lookup(topic) for topic in topics))
    return path
