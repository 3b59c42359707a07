"""docs/http-api.md, run: every command in its order, every reply compared."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_py

from api.app import create_app
from api.console.blueprint import NAME as CONSOLE
from mqnamesrv.store import EmbeddedStore
from mqpipeline.serving.publish import publish
from registry.drivers import run
from registry.expiry.worker_lease import tick
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from tests.api.gunicorn import ROOT, curl, http_workers
from tests.mqpipeline.serving.example import RUN, results

DOCUMENT = ROOT / "docs" / "http-api.md"
SHOWN_ADDRESS = "localhost:8080"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = (
    (re.compile(r"\d{13,}(-\d+)?"), "a time or an entry's id"),
    (re.compile(r"h\d+\.[0-9a-f]+-[0-9a-f]+"), "a request"),
    (re.compile(r"http:127\.0\.0\.1:\d+"), "a connection"),
    (re.compile(r"mqns_[a-z0-9]{8}_[A-Za-z0-9_-]{43}"), "a token"),
)
DIFFERING = {
    "ageMillis",
    "remainingMillis",
    "seq",
    "tokenId",
}  # the last by one where a slow machine has leases held


def shown() -> Iterator[tuple[list[str], str]]:
    """Yield the words of each command with the text below it."""
    for block in BLOCK.findall(DOCUMENT.read_text()):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = example.splitlines()
            size = next(i for i in range(1, len(lines) + 1) if "\n".join(lines[:i]).count("'") % 2 == 0)
            yield shlex.split("\n".join(lines[:size])), "\n".join(lines[size:])


def steady(value: Any) -> Any:
    """Return a JSON value with masks for what differs from run to run."""
    if isinstance(value, dict):
        return {key: "a number" if key in DIFFERING else steady(member) for key, member in value.items()}
    if isinstance(value, list):
        return [steady(member) for member in value]
    if isinstance(value, int) and value > 10**12 and value != 1700000000000:
        return "a time"
    if isinstance(value, str):
        for pattern, name in VARYING:
            value = pattern.sub(name, value)
    return value


@pytest.mark.needs("curl")
def test_the_document_shows_what_happens(store: EmbeddedStore, redis: redis_py.Redis) -> None:
    examples = list(shown())
    assert len(examples) > 30
    publish(redis, "default", RUN, results())
    with http_workers(store.url) as address:
        for command, text in examples:
            run(tick(Keys(), "w1", Origin("w1-1", "worker:w1")), redis)
            _, reply = curl(*(word.replace(SHOWN_ADDRESS, address) for word in command[1:]))
            assert steady(json.loads(reply)) == steady(json.loads(text)), command


def test_the_document_names_every_operation() -> None:
    """The console's pages have a document of their own."""
    text = DOCUMENT.read_text()
    for rule in create_app(Options(), redis=redis_py.Redis()).url_map.iter_rules():
        if rule.endpoint.startswith(f"{CONSOLE}."):
            continue
        path = rule.rule.replace("path:", "")
        assert path in text, path
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            assert re.search(rf"`{method}( {re.escape(path)}`|`.*{re.escape(path)}`)", text), (method, path)
