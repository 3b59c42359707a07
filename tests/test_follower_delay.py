"""The mode in which followers lag reaches the processes that tests start."""

import os
import subprocess
import sys

import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from testbed.delayed_reads import VARIABLE
from testbed.follower_delay import STARTUP

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


def test_what_a_process_reads_from_a_stream_comes_late(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    redis.xadd("stream", {"k": "v"})
    env = os.environ | {VARIABLE: "0.7", "PYTHONPATH": str(STARTUP)}
    done = subprocess.run(
        [sys.executable, "-c", READ, store.url], env=env, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) >= 0.7
