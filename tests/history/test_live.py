"""Histories of a real server with several workers, as clients make them over real connections, are as promised.

`HISTORY_MINUTES=20 pytest tests/history/test_live.py -s -k killed` goes on for so long, each time with another seed; a
history that is not as promised stays in a file, which the failure names.
"""

import os
import secrets
import time
from collections import Counter
from pathlib import Path

import pytest

from faults.history import History, Outage, Recorder, furthest_behind_s, judge
from mqnamesrv.store import EmbeddedStore
from testbed.nameserver import NameServer
from tests.history.recording import address, expired, frozen, kill_workers

WORKERS = "3"
MINUTES = float(os.environ.get("HISTORY_MINUTES", "0"))
KILLS, KILL_EVERY_S = 4, 2.0
QUIET_S, FROZEN_S = 2.0, 3.5  # a store that is frozen for longer than 5 s has its leases held


def counted(history: History) -> Counter[str]:
    return Counter(one.kind if one.acknowledged else f"unanswered {one.kind}" for one in history.operations)


def shown(history: History, outages: tuple[Outage, ...] = ()) -> None:
    behind_ms = 1000 * furthest_behind_s(history, outages=outages)
    print(f"\n{dict(counted(history))}, at most {behind_ms:.0f} ms behind")


@pytest.mark.timeout(60 * MINUTES + 120)
def test_as_promised_while_leases_end_and_workers_are_killed(store: EmbeddedStore, tmp_path: Path) -> None:
    server = NameServer(tmp_path, {"remotingWorkers": WORKERS}, url=store.url, namespace="history")
    until, seed, done = time.monotonic() + 60 * MINUTES, 0, Counter[str]()
    try:
        server.start()
        while not done or time.monotonic() < until:
            recorder = Recorder([address(server)], prefix=f"round-{seed}", seed=seed)
            recorder.start()
            kill_workers(server, KILLS, KILL_EVERY_S)
            history = recorder.stop()
            report = judge(history)
            if not report.ok:
                history.save(tmp_path / "history.json")
            assert report.ok, f"{report}\nkept in {tmp_path / 'history.json'}"
            done += counted(history)
            seed = secrets.randbelow(1 << 32)
        ends = expired(server)
    finally:
        server.stop()
    assert done["register"] > 100
    assert done["unregister"] > 10
    assert done["lookup"] > 2000
    assert ends > 10
    assert len({one.connection for one in history.operations}) > len(
        {one.client for one in history.operations}
    )
    print(f"\n{dict(done)}, {ends} leases that ended")
    shown(history)


def test_as_promised_while_the_store_stands_still(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store", keep=False)
    store.start()
    server = NameServer(tmp_path / "server", {"remotingWorkers": WORKERS}, url=store.url)
    try:
        server.start()
        recorder = Recorder([address(server)])
        recorder.start()
        time.sleep(QUIET_S)
        outage = Outage(*frozen(store, FROZEN_S))
        time.sleep(QUIET_S)
        history = recorder.stop()
    finally:
        server.stop()
        store.stop()
    report = judge(history, outages=(outage,))
    assert report.ok, report
    assert counted(history)["unanswered register"]
    since = [one for one in history.operations if one.began_s > outage.end_s]
    assert {"register", "lookup"} <= {one.kind for one in since if one.acknowledged and one.value}
    shown(history, (outage,))
