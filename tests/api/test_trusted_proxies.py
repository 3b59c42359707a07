"""Who a client is, and its user, behind trusted proxies; from any other peer no header is believed."""

import json
from typing import Any

import fakeredis
import pytest
from msgspec.structs import replace

from api.app import create_app
from api.trusted_proxies import HOPS_MOST, USER_MOST, client_of, user_of
from mqnamesrv.store import EmbeddedStore
from registry.options.catalogue import Options
from registry.options.networks import networks_of
from tests.api.gunicorn import curl, http_workers
from tests.api.http import Http

PROXIES = "10.0.0.0/8, fd00::/8"
PROXY = {"REMOTE_ADDR": "10.0.0.1", "REMOTE_PORT": "5000"}
USER = "X-Forwarded-User"


@pytest.mark.parametrize(
    ("header", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7:4711"),
        ("6.6.6.6, 192.0.2.7", "192.0.2.7"),  # the client wrote 6.6.6.6
        ("192.0.2.7, 10.0.0.9", "192.0.2.7"),
        ("6.6.6.6,192.0.2.7,10.0.0.9 , 10.0.0.8", "192.0.2.7"),
        ("10.0.0.9", "10.0.0.9"),
        ("10.0.0.9, 10.0.0.8", "10.0.0.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:DB8:0::1]", "2001:db8::1"),
        ("[2001:db8::1]:4711, [fd00::2]:80", "2001:db8::1:4711"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, ::ffff:10.0.0.9", "192.0.2.7"),
        ("192.0.2.7, unknown", None),
        ("192.0.2.7, unknown, 10.0.0.9", "10.0.0.9"),
        ("192.0.2.7,", None),
        ("", None),
        (", ,", None),
        ("192.0.2.7:70000", None),
        ("192.0.2.7:0", "192.0.2.7"),
        ("192.0.2.7:4711:1", None),
        ("192.0.2.777", None),
        ("0300.0.2.7", None),
        ("[192.0.2.7", None),
        ("fe80::1%eth0\x1b[2J", None),
        ("http:192.0.2.7", None),
        ("\u0661\u0662.0.0.1", None),
        ("192.0.2.7" + ", 10.0.0.9" * (HOPS_MOST - 1), "192.0.2.7"),
        ("192.0.2.7" + ", 10.0.0.9" * HOPS_MOST, "10.0.0.9"),
        ("6.6.6.6," * 100_000 + "192.0.2.7", "192.0.2.7"),
        ("1" * 100_000, None),
    ],
    ids=lambda text: str(text)[:40],
)
def test_the_client(header: str, client: str | None) -> None:
    named = client_of(header, networks_of(PROXIES))
    assert (named and ":".join(filter(None, named))) == client


@pytest.mark.parametrize(
    ("header", "user"),
    [
        ("alice", "alice"),
        (" alice@example.org ", "alice@example.org"),
        ("CN=alice,O=ops", "CN=alice,O=ops"),
        ("system:serviceaccount:mq:ops", "system:serviceaccount:mq:ops"),
        ("zoë".encode().decode("latin-1"), "zoë"),
        ("a" * USER_MOST, "a" * USER_MOST),
        ("a" * (USER_MOST + 1), None),
        ("", None),
        (" ", None),
        ("zo\xeb", None),  # no UTF-8
        ("alice\r\nX: y", None),
        ("alice\x1b[2J", None),
        ("\u202e".encode().decode("latin-1"), None),
        ("192.0.2.7", None),
        ("192.0.2.7:4711", None),
        ("[2001:db8::1]:4711", None),
        ("fd00::1", None),
    ],
)
def test_the_user(header: str, user: str | None) -> None:
    assert user_of(header) == user


def _origin_of(options: Options, environ: dict[str, str], headers: dict[str, str]) -> tuple[Any, Any]:
    """Return actor and peer of a change that any caller may make."""
    options = replace(options, access_admin="open", access_audit="open")
    store: Any = fakeredis.FakeRedis(decode_responses=True)
    http = Http(create_app(options, redis=store).test_client())
    body = {"value": "x"}
    assert http("PUT", "/v1/kv/n/k", body, environ_overrides=environ, headers=headers).status == 200
    event = http.ok("GET", "/v1/events?kind=kv_changed")["events"][0]
    return event["actor"], event["peer"]


TRUSTING = Options(http_trusted_proxies=PROXIES, http_user_header=USER)
FORGED = {
    "X-Forwarded-For": "192.0.2.7",
    USER: "alice",
    "Forwarded": "for=192.0.2.7",
    "X-Real-IP": "192.0.2.7",
}


def test_a_change_through_a_proxy_is_of_its_user() -> None:
    assert _origin_of(TRUSTING, PROXY, FORGED) == ("http:alice", "192.0.2.7")


def test_without_a_user_it_is_of_the_client() -> None:
    assert _origin_of(TRUSTING, PROXY, FORGED | {USER: "192.0.2.9:80"}) == ("http:192.0.2.7", None)
    only_for = Options(http_trusted_proxies=PROXIES)
    assert _origin_of(only_for, PROXY, FORGED) == ("http:192.0.2.7", None)


def test_without_a_client_it_is_of_the_proxy() -> None:
    assert _origin_of(TRUSTING, PROXY, {USER: "alice"}) == ("http:alice", "10.0.0.1:5000")
    forwarded = {"Forwarded": "for=192.0.2.7"}
    assert _origin_of(TRUSTING, PROXY, forwarded) == ("http:10.0.0.1:5000", None)


@pytest.mark.parametrize("peer", ["192.0.2.1", "11.0.0.1", "fe80::1", "", "/run/proxy.sock"])
def test_nothing_is_believed_of_others(peer: str) -> None:
    environ = {"REMOTE_ADDR": peer, "REMOTE_PORT": ""}
    assert _origin_of(TRUSTING, environ, FORGED) == (f"http:{peer}".removesuffix(":"), None)


@pytest.mark.parametrize("options", [Options(), Options(http_user_header=USER)])
def test_by_default_no_peer_is_trusted(options: Options) -> None:
    assert _origin_of(options, PROXY, FORGED) == ("http:10.0.0.1:5000", None)


def test_a_mapped_address_is_the_same_proxy() -> None:
    environ = {"REMOTE_ADDR": "::ffff:10.0.0.1", "REMOTE_PORT": "5000"}
    assert _origin_of(TRUSTING, environ, FORGED) == ("http:alice", "192.0.2.7")


@pytest.mark.needs("curl")
def test_through_gunicorn(store: EmbeddedStore, capfd: pytest.CaptureFixture[str]) -> None:
    """Several lines of a header count as one list; the audit finds user and client; so does the access log."""
    options = {"http_trusted_proxies": "127.0.0.1", "http_user_header": USER, "access_log": True}
    with http_workers(store.url, 1, **options, access_admin="cidr:192.0.2.7") as address:
        url = f"{address}/v1/kv/n/k"
        headers = ("X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 192.0.2.7, 127.0.0.1", f'{USER}: al"ice')
        forged = ("X_Forwarded_User: root", "X_Forwarded_For: 6.6.6.6", "Remote-User: root")
        sent = [text for header in (*headers, *forged) for text in ("-H", header)]
        as_json = ("-H", "content-type: application/json")
        assert curl("-X", "PUT", *as_json, *sent, "-d", '{"value":"y"}', url)[0] == 200
        for actor in ("http:al%22ice", "al%22ice", "192.0.2.7", "http"):
            page = json.loads(curl(f"{address}/v1/audit?actor={actor}")[1])
            assert [(one["actor"], one["peer"]) for one in page["events"]] == [('http:al"ice', "192.0.2.7")]
        assert json.loads(curl(f"{address}/v1/audit?actor=root")[1])["events"] == []
    assert '192.0.2.7 "al\\"ice" "PUT /v1/kv/n/k HTTP/1.1" 200' in capfd.readouterr().out


@pytest.mark.needs("curl")
def test_no_header_changes_path_or_scheme(store: EmbeddedStore) -> None:
    """gunicorn by itself lets any peer on loopback do so, and so the clients of a proxy there."""
    with http_workers(store.url, 1) as address:
        status, _ = curl("-H", "SCRIPT_NAME: /docs", f"{address}/docs/v1/kv")
        assert status == 404
        status, _ = curl("-H", "SCRIPT_NAME: /docs", f"{address}/v1/kv")
        assert status == 200
        contradictory = ("-H", "X-Forwarded-Proto: https", "-H", "X-Forwarded-Ssl: off")
        assert curl(*contradictory, f"{address}/v1/kv")[0] == 200
