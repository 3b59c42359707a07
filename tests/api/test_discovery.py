"""The list of name servers for clients whose only setting is this endpoint, as these ask for it and read it."""

import asyncio
import http.client
import socket
from typing import Any

import fakeredis
import pytest
import redis as redis_py

from api import name_server_lists
from api.app import create_app
from mqns.addresses.endpoint import AddressEndpoint
from registry.announcements import announce
from registry.drivers import run
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.store.connect import connect
from tests.api.gunicorn import http_workers
from tests.api.http import PROBLEM, Http

PATH = "/rocketmq/nsaddr"
GIVEN = "10.0.0.2:9876;10.0.0.1:9876"
AS_JAVA = {
    "Client-Version": "V5_5_0",
    "Content-Type": "application/x-www-form-urlencoded;charset=UTF-8",
    "Metaq-Client-RequestTS": "1795255839049",
    "Accept": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
}
"""What HttpURLConnection sends for HttpTinyClient.httpGet."""
CLOSED = dict.fromkeys(
    ("access_read", "access_broker", "access_admin", "access_config", "access_audit"), "off"
)


def http_of(redis: Any = None, **options: Any) -> Http:
    store: Any = redis or fakeredis.FakeRedis(decode_responses=True)
    return Http(create_app(Options(**options), redis=store).test_client())


def asked(http: Http, path: str = PATH, **options: Any) -> tuple[int, str]:
    reply = http.client.get(path, headers=AS_JAVA, **options)
    problem: Any = reply.json if reply.is_json else {"type": ""}
    return reply.status_code, reply.text if reply.status_code == 200 else problem["type"].rpartition(":")[2]


@pytest.fixture
def each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is asked for each request."""
    monkeypatch.setattr(name_server_lists, "WORKERS_EVERY_S", 0.0)


@pytest.mark.parametrize("query", ["", "?nofix=1", "?a=b&nofix=1&a=c", "?%ff", "?a"])
def test_a_configured_list_is_answered_in_its_order_whatever_the_query(query: str) -> None:
    assert asked(http_of(discovery_address=GIVEN), PATH + query) == (200, f"{GIVEN}\n")


def test_the_answer_is_plain_text_that_nothing_keeps() -> None:
    reply = http_of(discovery_address=GIVEN).client.get(PATH, headers=AS_JAVA | {"Accept-Encoding": "gzip"})
    assert reply.content_type == "text/plain; charset=utf-8"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "Content-Encoding" not in reply.headers
    assert "Set-Cookie" not in reply.headers
    head = http_of(discovery_address=GIVEN).client.head(PATH)
    assert (head.status_code, head.data, head.headers["Content-Length"]) == (200, b"", str(len(GIVEN) + 1))


def test_a_unit_has_its_own_list_or_that_of_all() -> None:
    http = http_of(discovery_address=GIVEN, discovery_units="blue=10.1.0.1:9876")
    assert asked(http, f"{PATH}-blue?nofix=1") == (200, "10.1.0.1:9876\n")
    assert asked(http, f"{PATH}-green?nofix=1") == (200, f"{GIVEN}\n")
    assert asked(http, f"{PATH}-Blue?nofix=1") == (200, f"{GIVEN}\n")


@pytest.mark.parametrize("unit", ["", "a%20b", "a%0Ab", "%C3%A9", "u" * 65, "a/b", "a;b"])
def test_a_name_of_no_unit_is_not_found(unit: str) -> None:
    reply = http_of(discovery_address=GIVEN)("GET", f"{PATH}-{unit}")
    assert (reply.status, reply.type) == (404, PROBLEM)


@pytest.mark.usefixtures("each_time")
def test_without_a_list_the_ready_workers_are_answered(redis: redis_py.Redis) -> None:
    http = http_of(redis)
    assert asked(http) == (503, "no-name-server-ready")
    assert asked(http, f"{PATH}-blue?nofix=1") == (503, "no-name-server-ready")
    run(announce(Keys(), "w1", "10.0.0.2:9876"), redis)
    run(announce(Keys(), "w2", "10.0.0.1:9876"), redis)
    assert asked(http) == (200, "10.0.0.1:9876;10.0.0.2:9876\n")
    redis.zincrby(Keys().announced, -6_000, "10.0.0.2:9876 w1")
    assert asked(http, f"{PATH}-blue?nofix=1") == (200, "10.0.0.1:9876\n")


@pytest.mark.usefixtures("each_time")
def test_clients_that_start_while_the_store_is_away_get_what_was_known(redis: redis_py.Redis) -> None:
    http = http_of(redis)
    run(announce(Keys(), "w1", "10.0.0.1:9876"), redis)
    assert asked(http) == (200, "10.0.0.1:9876\n")
    pool = redis.connection_pool
    pool.disconnect()
    port, pool.connection_kwargs["port"] = pool.connection_kwargs.get("port"), 1
    try:
        assert http("GET", "/readyz").status == 503
        assert asked(http) == (200, "10.0.0.1:9876\n")
    finally:
        pool.disconnect()
        pool.connection_kwargs["port"] = port


def test_a_list_of_options_needs_no_store() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with connect(f"redis://127.0.0.1:{bound.getsockname()[1]}") as away:
            http = http_of(away, discovery_address=GIVEN)
            assert asked(http) == (200, f"{GIVEN}\n")
            assert asked(http_of(away)) == (503, "no-name-server-ready")


def test_a_refusal_has_a_body_which_java_reads() -> None:
    """Without one, Java's HttpTinyClient fails with a NullPointerException in place of a line with the status."""
    reply = http_of()("GET", PATH)
    assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
    assert "advertiseAddress" in reply.json["detail"]


def test_names_are_answered_as_addresses_since_gos_client_takes_no_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {
        "two.example": ["10.0.0.9", "10.0.0.8", "2001:db8::1"],
        "six.example": ["2001:db8::2", "fe80::1%eth0"],
        "blocked.example": ["0.0.0.0"],
    }

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        if host not in answers:
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 0, 0, "", (address, port)) for address in answers[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(name_server_lists, "NAMES_EVERY_S", 0.0)
    http = http_of(discovery_address="two.example:1;six.example:2;10.0.0.8:1")
    assert asked(http) == (200, "10.0.0.8:1;10.0.0.9:1;[2001:db8::2]:2\n")
    del answers["six.example"]
    assert asked(http) == (200, "10.0.0.8:1;10.0.0.9:1;[2001:db8::2]:2\n")
    for name in ("none.example", "blocked.example"):
        assert asked(http_of(discovery_address=f"{name}:9876")) == (200, f"{name}:9876\n")


def test_clients_without_a_token_are_answered_where_all_else_is_closed() -> None:
    http = http_of(discovery_address=GIVEN, **CLOSED)
    assert http("GET", "/v1/brokers").status == 401
    assert asked(http, environ_overrides={"REMOTE_ADDR": "192.0.2.1"}) == (200, f"{GIVEN}\n")


def test_a_restart_of_many_clients_behind_one_address_meets_no_rate() -> None:
    http = http_of(discovery_address=GIVEN, http_reads_per_second=1)
    assert {asked(http, f"{PATH}-u?nofix=1")[0] for _ in range(50)} == {asked(http)[0]} == {200}
    assert 429 in {http("GET", "/v1/options").status for _ in range(5)}


def test_the_name_of_the_endpoint_is_one_of_the_allowed_hosts() -> None:
    host = {"HTTP_HOST": "jmenv.tbsite.net:8080"}
    assert http_of(discovery_address=GIVEN)("GET", PATH, environ_overrides=host).status == 400
    http = http_of(discovery_address=GIVEN, http_allowed_hosts="jmenv.tbsite.net")
    assert asked(http, environ_overrides=host) == (200, f"{GIVEN}\n")


def test_no_peer_changes_the_list() -> None:
    http = http_of(discovery_address=GIVEN)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert http(method, PATH).status == 405
    http("PATCH", "/v1/settings", {"settings": {"discoveryAddress": "192.0.2.66:9876"}})
    assert asked(http) == (200, f"{GIVEN}\n")


@pytest.mark.parametrize(
    ("bind", "listed", "found"),
    [
        ("0.0.0.0", "10.0.0.1:9876;127.0.0.1:9876", ("127.0.0.1:9876",)),
        ("0.0.0.0", "10.0.0.1:9876", ()),
        ("127.0.0.1", "127.0.0.1:9876", ()),
    ],
)
def test_the_doctor_names_addresses_that_lead_other_machines_to_themselves(
    redis: redis_py.Redis, bind: str, listed: str, found: tuple[str, ...]
) -> None:
    options = {"http_bind_address": bind, "discovery_address": listed, "access_audit": "open"}
    findings = http_of(redis, **options).ok("GET", "/v1/doctor")["findings"]
    assert [one["subjects"] for one in findings if one["check"] == "discovery-loopback"] == [
        [*found] for _ in found
    ]


def test_a_server_answers_http_1_0_and_our_own_client(store: Any) -> None:
    with http_workers(store.url, 1, discovery_address=GIVEN) as address:
        connection = http.client.HTTPConnection(address, timeout=10)
        connection._http_vsn, connection._http_vsn_str = 10, "HTTP/1.0"  # type: ignore[attr-defined]
        connection.request("GET", PATH, headers=AS_JAVA)
        assert connection.getresponse().read() == f"{GIVEN}\n".encode()
        connection.close()
        assert asyncio.run(AddressEndpoint(f"http://{address}{PATH}").fetch()) == tuple(GIVEN.split(";"))
