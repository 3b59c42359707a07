"""What comparing large tables costs the store: an idle minute of them against one of small tables."""

import tempfile
import time
from pathlib import Path

import redis

from bench.asking import Asking
from bench.report import Row
from bench.servers import this_server
from bench.setting import Setting
from bench.workloads import registered
from testbed.ports import free_port

NAME = "tables compared: 30 brokers of the same 10,000 topics, an idle minute"
NAMES = (NAME,)
BROKERS, TOPICS, FEW = 30, 10_000, 10
SETTLE_S = 5
MINUTE_S = 60
SHARE = 0.01


def tables_compared(setting: Setting) -> list[Row]:
    """Return one row: the share of the store's core that grows with the tables, by its own count of CPU time."""
    few, many = (_share(setting, topics) for topics in (FEW, TOPICS))
    return [
        Row(
            NAME,
            "",
            f"{many:.2%} of a core for the store; with {FEW} topics {few:.2%}",
            f"< {SHARE:.0%} for comparing",
            f"**{many - few:.2%}**",
            many - few < SHARE,
        )
    ]


def _share(setting: Setting, topics: int) -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        this_server(free_port(), Path(folder), core=setting.server_core) as server,
        Asking(server.port) as asking,  # its brokers are there as long as it is
        server.store() as store,
    ):
        asking.ask_all(registered(BROKERS, topics)())
        time.sleep(SETTLE_S)
        before_s = _used_s(store)
        time.sleep(MINUTE_S)
        return (_used_s(store) - before_s) / MINUTE_S


def _used_s(store: redis.Redis) -> float:
    cpu = store.info("cpu")
    return float(cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"])
