"""The mode in which followers lag reaches the processes that tests start, and what workers follow."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from testbed import nameserver
from testbed.delayed_reads import STARTUP, VARIABLE
from testbed.eventually import eventually
from tests.api.http import a_broker
from tests.mqnamesrv import process

READ = """
import asyncio, sys, time
from redis.asyncio import Redis
from registry.store.pipeline import read_stream

async def read():
    store = Redis.from_url(sys.argv[1])
    await store.ping()
    began = time.monotonic()
    await read_stream(store, "stream", "0", 1, None, 5)
    print(time.monotonic() - began)
    await store.aclose()

asyncio.run(read())
"""


def delayed(tmp_path: Path) -> dict[str, str]:
    return os.environ | {VARIABLE: "0.7", "PYTHONPATH": str(STARTUP)}


def of_a_server(tmp_path: Path) -> dict[str, str]:
    return nameserver.environment(tmp_path, {})


def of_the_command(tmp_path: Path) -> dict[str, str]:
    return process.environment(tmp_path)


@pytest.mark.parametrize("environment", [delayed, of_a_server, of_the_command])
def test_what_a_process_reads_from_a_stream_comes_late(
    environment: Callable[[Path], dict[str, str]],
    store: EmbeddedStore,
    redis: redis_py.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "0.7")
    redis.xadd("stream", {"k": "v"})
    done = subprocess.run(
        [sys.executable, "-c", READ, store.url],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) >= 0.7


FRESHNESS = re.compile(r'route_freshness_seconds_(?:bucket{le="0.1",.*|count{.*)} (\S+)')


def test_workers_of_a_server_apply_changes_late(tmp_path: Path) -> None:
    late = {VARIABLE: "0.7", "PYTHONPATH": str(STARTUP)}
    with process.NameServer(tmp_path, **late) as server:
        url = f"http://127.0.0.1:{server.http_port}"
        httpx.post(f"{url}/v1/brokers", json=a_broker(), trust_env=False).raise_for_status()

        def seen() -> list[str]:
            """Return how many changes were applied within 0.1 s, and how many were, once any was."""
            counts = FRESHNESS.findall(httpx.get(f"{url}/metrics", trust_env=False).text)
            return counts if any(map(float, counts)) else []

        in_time, _ = eventually(seen)
    assert float(in_time) == 0
