"""Clocks of the service that are wrong, all the time."""

from functools import partial
from pathlib import Path

from faults.places import OPTIONS, Place, Redis
from faults.row import Row
from faults.rows.brokers import LEASE_S, PROCESSES, silent
from tests.interop.servers import NameServer, serve
from tests.interop.stage import Stage

SKEW_S = 300
SKEWS = {"fast": SKEW_S, "slow": -SKEW_S}
LIBRARY = "*/faketime/libfaketime.so.1"


def skewed(stage: Stage) -> Place:
    """Two services on one Redis, one ahead of the time and one behind; Redis has the machine's."""
    store = Redis(stage, "--appendonly", "yes")
    store.await_answer()
    servers = tuple(_server(stage, store, name, offset) for name, offset in SKEWS.items())
    return Place(stage, store, servers[0], told=servers, lease_s=LEASE_S)


def _server(stage: Stage, store: Redis, name: str, offset_s: int) -> NameServer:
    libraries = sorted(Path("/usr/lib").glob(LIBRARY))
    if not libraries:
        raise FileNotFoundError("libfaketime is not installed: see `make faults`")
    env = {"LD_PRELOAD": str(libraries[0]), "FAKETIME": f"{offset_s:+d}s", "NO_FAKE_STAT": "1"}
    options = OPTIONS | {"redisUrl": store.url, "brokerTimeoutMillis": str(int(LEASE_S * 1000))}
    return serve(stage, "ours", options, name=name, env=env)


ROWS = (
    Row(
        name="clock-skew",
        title=(
            f"clocks of two services on one Redis {SKEW_S // 60} minutes ahead and behind (libfaketime), while a "
            f"tenth of the brokers hang until their leases of {LEASE_S:.0f} s are over"
        ),
        place=skewed,
        fault=partial(silent, 10),
        lasts_s=LEASE_S + 5,
        processes=PROCESSES,
    ),
)
