"""When credentials were used last: noted over HTTP in the background, and shown with the principals."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import redis as redis_py
from redis.exceptions import ConnectionError

from access.records import Records
from api.access_records import AccessRecords
from api.app import create_app
from mqnamesrv.store import EmbeddedStore
from registry.access_uses import uses
from registry.drivers import run
from registry.keys import Keys
from registry.options.catalogue import Options
from testbed.eventually import eventually
from tests.api.gunicorn import curl, http_workers
from tests.api.http import Http
from tests.api.test_tokens import access_file, created

MINUTE_MS = 60_000
KEYED = """
[principals.mqadmin]
roles = ["operator"]
keys = [{ accessKey = "K", secrets = [{ file = "k.key" }, { file = "n.key", expires = 2099-01-01T00:00:00Z }] }]
[principals.brokers]
roles = ["broker"]
certificates = ["dns:broker.example"]
"""


@pytest.mark.needs("curl")
def test_uses_of_tokens_are_written_before_the_process_ends(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    path, tokens = access_file(tmp_path)
    with http_workers(store.url, 2, access_file=str(path)) as address:
        curl(f"http://{address}/healthz")  # the first request waits until the application is built
        stored = created(address)
        for token, status in (
            (tokens["reader"], 200),
            (stored["token"], 200),
            (tokens["operator"][:-2], 401),
        ):
            shown = {"Authorization": f"Bearer {token}"}
            assert httpx.get(f"http://{address}/v1/whoami", headers=shown).status_code == status
    reader, operator = (tokens[name].split("_")[1] for name in ("reader", "operator"))
    written = set(run(uses(Keys()), redis))  # another test's server may have ended meanwhile
    assert {f"token:{reader}", f"token:{stored['tokenId']}"} <= written
    assert f"token:{operator}" not in written


def test_last_uses_are_shown_with_their_credentials(redis: redis_py.Redis, tmp_path: Path) -> None:
    path, tokens = access_file(tmp_path)
    for name in ("k.key", "n.key"):
        (tmp_path / name).write_text("0123456789abcdef")
        (tmp_path / name).chmod(0o600)
    path.write_text(path.read_text() + KEYED)
    http = Http(create_app(Options(access_file=str(path)), redis=redis).test_client())
    stored = http.ok("POST", "/v1/access/tokens", {"principal": "the-reader"})["tokenId"]
    assert http.ok("GET", "/v1/access/principals")["tokens"][0]["lastUsedMillis"] is None
    reader = tokens["reader"].split("_")[1]
    minutes: dict[Any, Any] = {
        **{"acl:K#k.key": 30_000_000, "dns:broker.example": 30_000_002},
        **{f"token:{reader}": 30_000_003, f"token:{stored}": 30_000_004},
    }
    redis.hset(Keys().access_used, mapping=minutes)
    answer = http.ok("GET", "/v1/access/principals")
    assert answer["tokens"][0]["lastUsedMillis"] == 30_000_004 * MINUTE_MS
    shown: dict[str, Any] = {
        one["id"]: one for principal in answer["principals"] for one in principal["credentials"]
    }
    assert {id: one["lastUsedMillis"] for id, one in shown.items()} == {
        "acl:K": 30_000_000 * MINUTE_MS,
        "dns:broker.example": 30_000_002 * MINUTE_MS,
        f"token:{reader}": 30_000_003 * MINUTE_MS,
        f"token:{tokens['operator'].split('_')[1]}": None,
    }
    assert (shown["acl:K"]["expiresMillis"], shown["dns:broker.example"]["secrets"]) == (None, [])
    assert shown["acl:K"]["secrets"] == [
        {"file": "k.key", "expiresMillis": None, "lastUsedMillis": 30_000_000 * MINUTE_MS},
        {"file": "n.key", "expiresMillis": 4_070_908_800_000, "lastUsedMillis": None},
    ]


@pytest.mark.parametrize("error", [ConnectionError("away"), None])
def test_uses_are_written_in_the_background_until_the_store_has_them(error: Exception | None) -> None:
    records, written, errors = Records(), list[str](), [error] if error else []

    def write() -> None:
        taken = records.uses.take()
        if errors:
            records.uses.put_back(taken)
            raise errors.pop()
        written.extend(taken)

    access = AccessRecords(records, write, 0.02)
    for credential in ("a", "b"):
        access.used(credential)
    assert written == []
    eventually(lambda: written == ["a", "b"])
    access.used("a")
    eventually(lambda: written == ["a", "b", "a"])
