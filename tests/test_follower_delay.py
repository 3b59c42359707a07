"""The mode in which followers lag reaches the processes that tests start."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from testbed import nameserver
from testbed.delayed_reads import STARTUP, VARIABLE
from tests.mqnamesrv import process

READ = """
import asyncio, sys, time
from redis.asyncio import Redis

async def read():
    store = Redis.from_url(sys.argv[1])
    await store.ping()
    began = time.monotonic()
    await store.xread({"stream": "0"})
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
