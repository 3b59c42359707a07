"""300 brokers of 10,000 topics register within a minute, then send heartbeats every 30 s, under lookups of routes."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.generator import Load, Sample, Stream
from bench.report import Row
from bench.servers import this_server
from bench.setting import Setting
from bench.workloads import clustered, heartbeats, lookup, topic_names
from testbed.ports import free_port

NAME = "300 brokers register 10,000 topics each in a minute"
DURING, AFTER = f"{NAME}: lookups meanwhile", f"{NAME}: lookups while they send a heartbeat every 30 s"
NAMES = (NAME, DURING, AFTER)
BROKERS, TOPICS = 300, 10_000
PREFIX, IN_A_CLUSTER = "big", 10  # brokers with the same topics
REGISTERING_S, HEARTBEATS_S, PERIOD_S = 60, 60, 30
LOOKUPS_A_SECOND, CLIENTS = 2_000, 100
ASKED_IN_A_CLUSTER = 50  # of its topics
DONE_S = REGISTERING_S + 1  # the last is due at the end of the minute
DURING_MS, AFTER_MS = 20.0, 10.0
BYTES_A_BROKER = (
    6 << 20
)  # of memory: its frame, in the generator too, and its part of Redis, twice while it is saved
GB = 1e9


def big_scene(setting: Setting) -> list[Row]:
    """Return three rows; of fewer brokers if there is not enough memory.

    Every 30 s a broker sends a whole registration and a heartbeat (904). Ten brokers each are a cluster
    of their own with topics of its own. Lookups go to 50 topics of each cluster; as long as none of its brokers has
    registered, the right answer is that there is no such topic."""
    brokers = min(BROKERS, _free_bytes() // BYTES_A_BROKER // IN_A_CLUSTER * IN_A_CLUSTER)
    registrations = clustered(range(brokers), TOPICS, PREFIX, in_a_cluster=IN_A_CLUSTER)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        streams = [
            Stream(brokers, _written(folder / "registrations", registrations)),
            Stream(brokers, _written(folder / "heartbeats", heartbeats(brokers))),
            Stream(CLIENTS, _written(folder / "lookups", _lookups(brokers))),
        ]
        server = stack.enter_context(this_server(free_port(), folder / "ours", core=setting.server_core))
        load = stack.enter_context(Load(setting.program("load"), server.port, streams))
        ask = f"2=open:{LOOKUPS_A_SECOND}"
        registered, during = load.run(REGISTERING_S, f"0=open:{brokers / REGISTERING_S}", ask)
        rate = brokers / PERIOD_S
        again, heartbeat_sample, after = load.run(HEARTBEATS_S, f"0=open:{rate}", f"1=open:{rate}", ask)
        with server.store() as store:
            used = store.info("memory")["used_memory"]
    return _rows(brokers, used, registered, during, again, heartbeat_sample, after, setting)


def _lookups(brokers: int) -> Iterator[bytes]:
    for broker in range(0, brokers, IN_A_CLUSTER):
        for topic in topic_names(ASKED_IN_A_CLUSTER, _cluster(broker)):
            yield lookup(topic)


def _cluster(broker: int) -> str:
    """Return the cluster of a broker, which also begins its topics' names."""
    return f"{PREFIX}-{broker // IN_A_CLUSTER:02d}"


def _rows(
    brokers: int,
    used: int,
    registered: Sample,
    during: Sample,
    again: Sample,
    heartbeat_sample: Sample,
    after: Sample,
    setting: Setting,
) -> list[Row]:
    """Return the rows. A refused registration counts as not done; once all are done no lookup may fail."""
    done = registered.answers - registered.errors
    text = f"{brokers} brokers in clusters of {IN_A_CLUSTER}; last answer after {registered.seconds:.1f} s"
    text += f", slowest {registered.max_us / 1e6:.1f} s; {used / GB:.2f} GB in Redis"
    in_time = registered.seconds <= DONE_S
    p99s = f"; whole registrations p99 {again.p99_us / 1000:.1f} ms, heartbeats {heartbeat_sample.p99_us / 1000:.1f} ms"
    failed = sum(sample.errors + sample.lost for sample in (again, heartbeat_sample, after))
    return [
        Row(NAME, "", text, "completes", f"**{done} done**", done == BROKERS and in_time),
        _lookup_row(DURING, during, DURING_MS, "", during.lost, setting),
        _lookup_row(AFTER, after, AFTER_MS, p99s, failed, setting),
    ]


def _lookup_row(name: str, sample: Sample, goal_ms: float, more: str, failed: int, setting: Setting) -> Row:
    goal = f"p99 < {goal_ms:g} ms"
    if not setting.latencies:
        return Row(name, "", "", goal, "no clock good enough", None)
    p99_ms = sample.p99_us / 1000
    text = f"{LOOKUPS_A_SECOND:,} a second: p50 {sample.p50_us / 1000:.2f}, worst {sample.max_us / 1000:.1f} ms{more}"
    failures = f", {failed:,} failed" if failed else ""
    return Row(name, "", text + failures, goal, f"**{p99_ms:.1f} ms**", p99_ms < goal_ms and not failed)


def _written(path: Path, frames: Iterable[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(frames)
    return path


def _free_bytes() -> int:
    """Return the bytes of memory that may be used now."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemAvailable")
