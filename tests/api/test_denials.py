"""Known callers that are refused over HTTP: entries `access_denied`, with their number."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import redis as redis_py

from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys
from tests.api.gunicorn import curl, http_workers
from tests.api.test_tokens import access_file, put


@pytest.mark.needs("curl")
def test_a_refused_token_is_told_with_method_and_route(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    path, tokens = access_file(tmp_path)
    with http_workers(store.url, 1, access_file=str(path), access_audit="token") as address:
        curl(f"http://{address}/healthz")  # the first request waits until the application is built
        assert [put(address, tokens["reader"])[0] for _ in range(3)] == [403] * 3
        assert [put(address, tokens["reader"][:-2])[0], put(address)[0]] == [401] * 2
        shown = {"Authorization": f"Bearer {tokens['reader']}"}
        assert httpx.get(f"http://{address}/v1/events", headers=shown).status_code == 403
        found: Any = redis.xrange(Keys().events)
        assert found == []  # no request waited for it
    found = redis.xrange(Keys().events)
    denied = [
        {name: event[name] for name in ("actor", "operation", "class", "count")}
        for _, event in found
        if event["kind"] == "access_denied"
    ]
    assert sorted(denied, key=lambda event: str(event["count"])) == [
        {"actor": "token:the-reader", "operation": "GET /v1/events", "class": "audit", "count": "1"},
        {
            "actor": "token:the-reader",
            "operation": "PUT /v1/kv/<namespace>/<path:key>",
            "class": "admin",
            "count": "3",
        },
    ]
    assert all(
        event["peer"].startswith("127.0.0.1:") for _, event in found if event["kind"] == "access_denied"
    )
