"""A worker with an empty cache is asked for many topics at once: how fast it answers, what the store sees of it."""

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
from bench.servers import ours
from bench.setting import Setting, free_port
from bench.workloads import lookup, registered, topic_names

NAME = "cold start: 5,000 topics asked at once of an empty cache"
STAMPEDE = "cold start: the same, each by 10 clients"
NAMES = (NAME, STAMPEDE)
TOPICS, BROKERS, CONNECTIONS = 5_000, 4, 200
ASKERS = 10
READS_A_TOPIC = 1.1  # hashes: its own, and its brokers' with each call; a stampede would be ten
HASHES = "cmdstat_hgetall"
SCRIPTS = ("cmdstat_evalsha", "cmdstat_evalsha_ro", "cmdstat_fcall", "cmdstat_fcall_ro")


class Asked(msgspec.Struct, frozen=True):
    """Scripts that a store has run, and hashes that it has read whole."""

    scripts: int
    hashes: int


def cold_starts(setting: Setting) -> list[Row]:
    """The rate of the burst against Java's of the same burst, warm; then how often the store was asked in all."""
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


def _cold(setting: Setting, frames: Path, folder: Path) -> tuple[Sample, Asked]:
    """One burst at a server of ours that was never asked for a route -> what came, and scripts and hashes that the
    store ran and read for it."""
    with (
        ours(free_port(), folder, core=setting.server_core) as server,
        Asking(server.port) as asking,
        Load(setting.program("load"), server.port, [Stream(CONNECTIONS, frames)]) as load,
        server.store() as store,
    ):
        asking.ask_all(registered(BROKERS, TOPICS)())
        before = _asked(store)
        sample = _burst(load)
        after = _asked(store)
        return sample, Asked(after.scripts - before.scripts, after.hashes - before.hashes)


def _burst(load: Load) -> Sample:
    (sample,) = load.run(0, "0=once")
    if sample.errors or sample.lost:
        raise RuntimeError(f"{NAME}: {sample.errors} errors, {sample.lost} lost")
    return sample


def _asked(store: redis.Redis) -> Asked:
    """What the store has done so far."""
    counts = store.info("commandstats")
    calls = {name: counts[name]["calls"] for name in (*SCRIPTS, HASHES) if name in counts}
    return Asked(sum(calls.get(name, 0) for name in SCRIPTS), calls.get(HASHES, 0))


def _written(path: Path, topics: Iterable[str]) -> Path:
    path.write_bytes(b"".join(lookup(topic) for topic in topics))
    return path
