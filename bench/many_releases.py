"""Lookups by clients of a hundred releases against those of one: 10,000 topics, a million different requests."""

import itertools
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.asking import Asking
from bench.closed_loop import sampled
from bench.generator import Load, Sample, Stream
from bench.memory import worker_bytes
from bench.report import Row, spread
from bench.servers import Server, this_server
from bench.setting import Setting
from bench.workloads import lookups, registered, topic_names
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, SerializeType, encode
from rocketmq_remoting.version import V4_9_4
from testbed.ports import free_port

RELEASES, TOPICS, BROKERS = 100, 10_000, 4
NAME = f"lookups by clients of {RELEASES} releases, {TOPICS:,} topics"
NAMES = (NAME, f"{NAME}, 16 at once")
DEPTHS = (1, 16)
GOAL = 0.9
CONNECTIONS = 2 * RELEASES
MB = 1e6


def many_releases(wanted: str, setting: Setting) -> list[Row]:
    """Return the rows whose names hold `wanted`: replies per CPU second against those to one release."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        one, many = folder / "one", folder / "many"
        one.write_bytes(b"".join(lookups(TOPICS)))
        many.write_bytes(b"".join(_lookups()))
        server = stack.enter_context(this_server(free_port(), folder / "data", core=setting.server_core))
        stack.enter_context(Asking(server.port)).ask_all(registered(BROKERS, TOPICS)())
        loads = [
            stack.enter_context(Load(setting.program("load"), server.port, [Stream(CONNECTIONS, file)]))
            for file in (one, many)
        ]
        return [
            _row(name, server, loads, f"0=closed:{depth}", setting)
            for name, depth in zip(NAMES, DEPTHS, strict=True)
            if wanted in name
        ]


def _lookups() -> Iterator[bytes]:
    """Yield each topic asked for by each release, topics in the order of the other load, releases in turn.

    So each connection of the load keeps to one release, as clients do."""
    topics = list(topic_names(TOPICS))
    for turn, place in itertools.product(range(RELEASES), range(TOPICS)):
        yield _lookup(topics[(place + turn) % TOPICS], place % RELEASES)


def _lookup(topic: str, release: int) -> bytes:
    fields = {"topic": topic, "release": str(release)} if release % 3 else {"topic": topic}
    command = Command(
        code=RequestCode.GET_ROUTEINFO_BY_TOPIC,
        opaque=1,
        version=V4_9_4 + release,
        ext=fields,
        serialize_type=SerializeType.ROCKETMQ,
    )
    return encode(command)


def _row(name: str, server: Server, loads: list[Load], mode: str, setting: Setting) -> Row:
    sizes = []
    for load in loads:
        load.run(setting.our_warm_up_s, mode)
        sizes.append(worker_bytes(server) / MB)
    runs: list[list[Sample]] = [[], []]
    for _ in range(setting.rounds):
        for load, samples in zip(loads, runs, strict=True):
            samples.append(sampled(name, server, load, mode, setting.seconds))
    one, many = ([sample.per_cpu_second for sample in samples] for samples in runs)
    ratio = statistics.median(many) / statistics.median(one)
    return Row(
        name,
        f"one release: {spread(one)}",
        f"{spread(many)}; worker of {sizes[1]:.0f} MB, after one release {sizes[0]:.0f}",
        f"≥ {GOAL:g} times",
        f"**{ratio:.2f} times**",
        ratio >= GOAL,
    )
