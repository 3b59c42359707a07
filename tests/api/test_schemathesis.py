"""Requests that Schemathesis makes of the OpenAPI document, to gunicorn over a real store: answers are as it says.

SCHEMATHESIS_SECONDS=600 makes other requests at each run, for so long."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis as redis_py

from api.openapi import EXAMPLES
from mqnamesrv.store import EmbeddedStore
from mqpipeline.serving.publish import publish
from registry.announcements import announce
from registry.drivers import run
from registry.expiry.worker_lease import tick
from registry.keys import Keys
from registry.plans import Origin
from tests.api.gunicorn import http_workers
from tests.api.http import Http
from tests.mqpipeline.serving.example import RUN, results

CONFIG = Path(__file__).with_name("schemathesis.toml")
COMMAND = Path(sys.executable).with_name("schemathesis")
SECONDS = int(os.environ.get("SCHEMATHESIS_SECONDS", "0"))
SAME_EACH_TIME = ["--generation-deterministic", "--seed", "1", "--max-examples", "6"]
"""About a minute."""
TICK_S = 0.5


@contextmanager
def ticking(redis: redis_py.Redis) -> Iterator[None]:
    """Renew the lease clock and announce an address, as a remoting worker does."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(TICK_S):
            run(tick(Keys(), "w1", Origin("w1-1", "worker:w1")), redis)
            run(announce(Keys(), "w1", "10.0.0.1:9876"), redis)

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def schemathesis(address: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Return how a run ended."""
    command = [str(COMMAND), "--config-file", str(CONFIG), "run", f"http://{address}/openapi.json"]
    always = [
        "--exclude-checks",
        "ensure_resource_availability",
        "--continue-on-failure",
        "--no-color",
        "--warnings",
        "off",
    ]
    return subprocess.run([*command, *always, *options], capture_output=True, text=True)


@pytest.mark.timeout(300 + 2 * SECONDS)
def test_answers_are_as_the_document_says(store: EmbeddedStore, redis: redis_py.Redis, http: Http) -> None:
    for name, method, path in (
        ("registerBroker", "POST", "/v1/brokers"),
        ("putDrain", "PUT", "/v1/brokers/broker-a/drain"),
        ("putKvTable", "PUT", "/v1/kv/ORDER_TOPIC_CONFIG"),
        ("updateSettings", "PATCH", "/v1/settings"),
    ):
        http.ok(method, path, EXAMPLES[name].body)
    publish(redis, "default", RUN, results())
    with http_workers(store.url) as address, ticking(redis):
        done = schemathesis(address, *(["--max-time", str(SECONDS)] if SECONDS else SAME_EACH_TIME))
    assert done.returncode == 0, done.stdout


def test_a_wrong_answer_would_be_seen(store: EmbeddedStore) -> None:
    """No worker renews the lease clock here, so that `/readyz` is a 503."""
    with http_workers(store.url) as address:
        done = schemathesis(address, "--max-examples", "1", "--include-path", "/readyz")
    assert done.returncode == 1, done.stdout
    assert "Server error" in done.stdout
