"""Clocks of the service that are wrong, all the time."""

import sys
from functools import partial
from pathlib import Path

from faults.looks import Look
from faults.places import OPTIONS, Place, Redis, answers, plain
from faults.row import Row
from faults.rows.brokers import LEASE_S, PROCESSES, silent
from metrics.files import VARIABLE as METRICS
from mqnamesrv.children import ROOT
from testbed.eventually import eventually
from testbed.nameserver import environment
from testbed.ports import free_port
from testbed.rocketmq.servers import BOOT_S, NameServer
from testbed.rocketmq.stage import Stage

SKEW_S = 300
FAST = "fast"
SKEWS = {FAST: SKEW_S, "slow": -SKEW_S}
LIBRARY = "*/faketime/libfaketime.so.1"


def skewed(stage: Stage) -> Place:
    """Beside the service, workers whose clock is ahead and workers whose clock is behind; peers get all addresses."""
    place = plain(stage, lease_s=LEASE_S)
    place.servers += tuple(_workers(stage, place.store, name, offset) for name, offset in SKEWS.items())
    place.addresses["localhost:9464"] = _exporter(stage, FAST)
    return place


def _workers(stage: Stage, store: Redis, name: str, offset_s: int) -> NameServer:
    """Start workers as the Procfile does: libfaketime breaks the waits of the supervisor."""
    libraries = sorted(Path("/usr/lib").glob(LIBRARY))
    if not libraries:
        raise FileNotFoundError("libfaketime is not installed: see `make faults`")
    port = free_port()
    counts = _counts(stage, name)
    counts.mkdir(parents=True)
    own = {"redisUrl": store.url, "listenPort": str(port), "brokerTimeoutMillis": str(int(LEASE_S * 1000))}
    clock = {"LD_PRELOAD": str(libraries[0]), "FAKETIME": f"{offset_s:+d}s", "NO_FAKE_STAT": "1"}
    words = ["-m", "gunicorn", "-c", "python:mqnamesrv.gunicorn_remoting", "wsgi:app"]
    env = environment(stage.folder / name, OPTIONS | own) | clock
    env |= {"PYTHONPATH": str(ROOT), METRICS: str(counts)}
    server = NameServer("ours", stage.start(name, [sys.executable, *words], env=env), port)
    eventually(lambda: answers(server), BOOT_S)
    return server


def _counts(stage: Stage, name: str) -> Path:
    """Return the folder in which those workers publish what they count."""
    return stage.folder / f"{name}-metrics"


def _exporter(stage: Stage, name: str) -> str:
    """Start an exporter of those workers' metrics, and return its address."""
    port = free_port()
    own = {"metricsPort": str(port), "httpBindAddress": "127.0.0.1"}
    words = ["-m", "gunicorn", "-c", "python:mqnamesrv.gunicorn_metrics", "api.exporter:app"]
    env = environment(stage.folder / f"{name}-exporter", own)
    env |= {"PYTHONPATH": str(ROOT), METRICS: str(_counts(stage, name))}
    stage.start(f"{name}-exporter", [sys.executable, *words], env=env)
    return f"127.0.0.1:{port}"


ROWS = (
    Row(
        name="clock-skew",
        title=(
            f"clocks of workers {SKEW_S // 60} minutes ahead and behind, on one Redis (libfaketime), while a tenth "
            f"of the brokers hang until their leases of {LEASE_S:.0f} s are over"
        ),
        place=skewed,
        fault=partial(silent, 10),
        lasts_s=LEASE_S + 5,
        processes=PROCESSES,
        look=Look(shows=[rf"redis_clock_offset_seconds.* ({SKEW_S - 1}|{SKEW_S})\."]),
    ),
)
