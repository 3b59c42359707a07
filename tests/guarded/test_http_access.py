"""Limits and revocations over HTTP: what random histories have found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import redis as redis_py

from api.app import create_app
from registry.options.catalogue import Options
from tests.api.http import Http, Reply, a_broker
from tests.guarded.principals_file import PrincipalsFile
from tests.guarded.world import Principal, Secret

TOKEN: Final = f"mqns_abcd1234_{'A' * 43}"
ID: Final = "token:abcd1234"
Ask = Callable[..., Reply]


@pytest.fixture
def ask(redis: redis_py.Redis, tmp_path: Path) -> Callable[[Principal], Ask]:
    """Returns what asks as a principal with these roles and limits, which its token alone proves."""

    def of(principal: Principal) -> Ask:
        file = PrincipalsFile(tmp_path)
        file.write({"team": principal._replace(tokens={"abcd1234": Secret(TOKEN)})})
        by_token: Any = dict.fromkeys(("access_broker", "access_admin", "access_config"), "token")
        http = Http(create_app(Options(access_file=str(file.path), **by_token), redis=redis).test_client())

        def send(method: str, path: str, body: object = None, token: str = TOKEN) -> Reply:
            return http(method, path, body, headers={"Authorization": f"Bearer {token}"})

        return send

    return of


def test_a_topic_is_deleted_in_clusters_within_the_limits(ask: Callable[[Principal], Ask]) -> None:
    team = ask(Principal(("operator",), {"clusters": ("c1",)}))
    statuses = [
        team("DELETE", f"/v1/topics/TopicA{query}", body).status
        for query, body in (("?cluster=c2", None), ("", None), ("", {"cluster": "c1"}), ("?cluster=c1", None))
    ]
    assert statuses == [403, 403, 403, 404]


def test_the_cluster_in_a_body_that_is_not_read_is_not_the_one_that_is_named(
    ask: Callable[[Principal], Ask],
) -> None:
    team = ask(Principal(("broker",), {"clusters": ("c1",)}))
    path = "/v1/brokers/broker-a?brokerAddr=127.0.1.1:10911&cluster="
    assert team("DELETE", f"{path}c2", {"cluster": "c1"}).status == 403
    assert team("DELETE", f"{path}c1", {"cluster": "c2"}).status == 404


def test_a_topic_is_set_on_brokers_within_the_limits(ask: Callable[[Principal], Ask]) -> None:
    team = ask(Principal(("operator", "broker"), {"brokers": ("broker-*",)}))
    assert team("POST", "/v1/brokers", a_broker()).status == 200

    def put(*names: str) -> int:
        body = {"queueDatas": [{"brokerName": name} for name in names]}
        return team("PUT", "/v1/topics/TopicA", body).status

    assert [put("broker-a"), put("broker-a", "other")] == [200, 403]


def test_what_is_acknowledged_counts_at_once_where_it_was_asked_for(ask: Callable[[Principal], Ask]) -> None:
    """A token that is created, and one that is revoked."""
    admin = ask(Principal(("admin",)))
    made = admin("POST", "/v1/access/tokens", {"principal": "console", "roles": ["admin"]}).json
    options = "GET", "/v1/options", None
    assert admin(*options, made["token"]).status == 200
    assert admin("POST", "/v1/access/revocations", {"credential": ID}, made["token"]).status == 200
    assert admin(*options).status == 401
    assert admin("DELETE", f"/v1/access/revocations/{ID}", None, made["token"]).status == 200
    assert admin(*options).status == 200
    assert admin("POST", "/v1/access/revocations", {"credential": f"token:{made['tokenId']}"}).status == 200
    assert admin(*options, made["token"]).status == 401


def test_a_certificate_is_revoked_by_its_pattern_as_the_file_has_it(ask: Callable[[Principal], Ask]) -> None:
    admin = ask(Principal(("admin",), certificates=("dns:Broker-*.Example.org",)))
    path, credential = "/v1/access/revocations", "dns:Broker-*.Example.org"
    assert admin("POST", path, {"credential": credential}).status == 200
    assert admin("GET", "/v1/access/principals").json["revoked"] == [credential.lower()]
    assert admin("DELETE", f"{path}/{credential}").json["eventId"]
    assert admin("GET", "/v1/access/principals").json["revoked"] == []
