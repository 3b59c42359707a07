"""The time of a first registration of 10,000 topics, and how long it blocks the store and other requests."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import redis

from bench.asking import Asking
from bench.generator import Load, Sample, Stream
from bench.report import Row, spread
from bench.servers import this_server
from bench.setting import Setting
from bench.workloads import CLUSTER, lookup, registration, topic_table
from testbed.ports import free_port

NAME = "first registration of 10,000 topics"
NAMES = (NAME,)
TOPICS = 10_000
BROKERS = 20  # of each part
BYSTANDER = 9_999
PAUSE_S = 0.1  # between two, so that each finds the server at rest
WALL_MS, SCRIPT_MS, HOLD_MS = 20.0, 5.0, 5.0
SLOWLOG_FROM_US = 100
WATCH = "0=open:1000"


def first_registrations(setting: Setting) -> list[Row]:
    """Return three rows. The time is taken with everything on one core, scripts and holds with Redis on the load's.

    On one core with Redis a worker waits for it, and what is seen from outside is no hold of its loop. The watcher asks
    each ms, over a connection of its own, for a route that no registration touches: what it waits at most is the
    longest hold, plus the 0.1 ms that a reply takes."""
    table = topic_table(TOPICS)
    frames = [registration(broker, table) for broker in range(2 * BROKERS)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(this_server(free_port(), folder / "ours", core=setting.server_core))
        asking = stack.enter_context(Asking(server.port))
        asking.ask(registration(BYSTANDER, topic_table(2, "bystander"), cluster=f"{CLUSTER}-2"))
        wall_ms = _register(asking, frames[:BROKERS])
        server.move_store(setting.load_core)
        watched = folder / "watched"
        watched.write_bytes(lookup("bystander_000000"))
        store = stack.enter_context(server.store())
        with Load(setting.program("load"), server.port, [Stream(1, watched)]) as load:
            load.run(1, WATCH)
            _log_scripts(store)
            load.begin(1 + 3 * (sum(wall_ms) / 1000 + BROKERS * PAUSE_S), WATCH)
            apart_ms = _register(asking, frames[BROKERS:])
            scripts_ms = _scripts_ms(store)
            (seen,) = load.end()
    return _rows(wall_ms, apart_ms, scripts_ms, seen, setting)


def _register(asking: Asking, frames: Sequence[bytes]) -> list[float]:
    """Return the ms of each, from the first byte sent to the reply."""
    taken = []
    for frame in frames:
        time.sleep(PAUSE_S)
        begin = time.perf_counter()
        asking.ask(frame)
        taken.append((time.perf_counter() - begin) * 1000)
    return taken


def _log_scripts(store: redis.Redis) -> None:
    store.config_set("slowlog-log-slower-than", SLOWLOG_FROM_US)
    store.config_set("slowlog-max-len", 100_000)
    store.slowlog_reset()


def _scripts_ms(store: redis.Redis) -> list[float]:
    """Return the times of scripts since `_log_scripts`, without the short ones; [0.0] if all were short."""
    entries = store.slowlog_get(100_000)
    return [
        entry["duration"] / 1000 for entry in entries if entry["command"].upper().startswith(b"EVALSHA")
    ] or [0.0]


def _rows(
    wall_ms: list[float], apart_ms: list[float], scripts_ms: list[float], seen: Sample, setting: Setting
) -> list[Row]:
    longest_ms, hold_ms = max(scripts_ms), seen.max_us / 1000
    slow = sum(took > SCRIPT_MS for took in scripts_ms)
    median_ms = sorted(wall_ms)[len(wall_ms) // 2]
    hold = Row(
        f"{NAME}: the worker's loop held, seen from outside",
        "",
        f"p99 {seen.p99_us / 1000:.1f}, p99.9 {seen.p999_us / 1000:.1f} ms",
        f"≤ {HOLD_MS:g} ms",
        f"**{hold_ms:.1f} ms** at worst",
        hold_ms <= HOLD_MS,
    )
    return [
        Row(
            NAME,
            "",
            f"{spread(wall_ms, 1)} ms; with Redis on another core {spread(apart_ms, 1)} ms",
            f"≤ {WALL_MS:g} ms",
            f"**{median_ms:.1f} ms**, {max(wall_ms):.1f} at worst",
            median_ms <= WALL_MS,
        ),
        Row(
            f"{NAME}: longest script (SLOWLOG)",
            "",
            f"{slow} of {len(scripts_ms)} scripts above {SLOWLOG_FROM_US / 1000:g} ms took over {SCRIPT_MS:g} ms",
            f"≤ {SCRIPT_MS:g} ms",
            f"**{longest_ms:.1f} ms**",
            longest_ms <= SCRIPT_MS,
        ),
        hold if setting.latencies else Row(hold.load, "", "", hold.goal, "no clock good enough", None),
    ]
