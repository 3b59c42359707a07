"""Bearer tokens over HTTP: of the access file and of the store, against real gunicorns (docs/access.md)."""

import json
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import redis as redis_py

from access.failures import MOST
from access.live import Stored, Take
from access.proof import BadCredential
from access.tokens import new_token
from api.tokens import FRESH_S, RETRY_S, SEEN_S, Tokens
from mqnamesrv.store import EmbeddedStore
from registry.errors import StoreUnavailable
from testbed.eventually import PATIENCE_S, eventually
from tests.api.gunicorn import curl, http_workers

VIA: Final = ("-H", "Via: 1.1 proxy")
"""Through a proxy, so that no address of this machine has rights."""
JSON: Final = ("-H", "Content-Type: application/json")
ask_get: Final = partial(httpx.get, timeout=PATIENCE_S)
ask_put: Final = partial(httpx.put, timeout=PATIENCE_S)
ask_post: Final = partial(httpx.post, timeout=PATIENCE_S)
ask_delete: Final = partial(httpx.delete, timeout=PATIENCE_S)
"""httpx's own 5 s are over where a machine stalls."""
WITHIN_S: Final = 3.0  # the contract's second, and two for a loaded machine


def access_file(folder: Path) -> tuple[Path, dict[str, str]]:
    """Write one with two principals, and return it with their tokens."""
    tokens = {name: new_token().token.reveal() for name in ("reader", "operator")}
    for name, token in tokens.items():
        (folder / f"{name}.token").write_text(token)
    path = folder / "access.toml"
    path.write_text(
        "".join(
            f'[principals.the-{name}]\nroles = ["{name}"]\ntokens = [{{ file = "{name}.token" }}]\n'
            for name in tokens
        )
    )
    for file in folder.iterdir():
        file.chmod(0o600)
    return path, tokens


@pytest.fixture
def guarded(store: EmbeddedStore, tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    path, tokens = access_file(tmp_path)
    with http_workers(store.url, 2, access_file=str(path), access_config="loopback token") as address:
        yield address, tokens


def put(address: str, token: str | None = None, *more: str, key: str = "k") -> tuple[int, Any]:
    shown = () if token is None else ("-H", f"Authorization: Bearer {token}")
    url = f"http://{address}/v1/kv/n/{key}"
    status, body = curl("-X", "PUT", *VIA, *JSON, *shown, *more, "-d", '{"value":"x"}', url)
    return status, json.loads(body)


def created(address: str, role: str = "operator") -> dict[str, Any]:
    body = {"principal": "console", "roles": [role]}
    answer: dict[str, Any] = (
        ask_post(f"http://{address}/v1/access/tokens", json=body).raise_for_status().json()
    )
    return answer


@pytest.mark.needs("curl")
@pytest.mark.conformance("AC-36")
def test_a_drain_needs_an_operator_s_token(
    guarded: tuple[str, dict[str, str]], redis: redis_py.Redis
) -> None:
    address, tokens = guarded
    broker = {"cluster": "c1", "brokerName": "b", "brokerAddr": "127.0.0.1:1", "brokerId": 0, "topics": []}
    ask_post(f"http://{address}/v1/brokers", json=broker).raise_for_status()

    def drain(*headers: str) -> tuple[int, str]:
        body = '{"owner":"o","reason":"r"}'
        status, text = curl(
            "-i", "-X", "PUT", *VIA, *JSON, *headers, "-d", body, f"http://{address}/v1/brokers/b/drain"
        )
        return status, text.lower()

    def bearer(token: str) -> tuple[str, str]:
        return "-H", f"Authorization: Bearer {token}"

    status, text = drain()
    assert (status, "www-authenticate: bearer\n" in text) == (401, True)
    status, text = drain(*bearer(new_token().token.reveal()))
    assert (status, 'www-authenticate: bearer error="invalid_token"\n' in text) == (401, True)
    status, text = drain(*bearer(tokens["reader"]))
    assert (status, "urn:redis-namesrv:forbidden" in text, "www-authenticate" in text) == (403, True, False)
    assert drain(*bearer(tokens["operator"]))[0] == 200
    entries: Any = redis.xrevrange("ns:{default}:events", count=1)
    event = entries[0][1]
    assert (event["kind"], event["actor"]) == ("drain_changed", "token:the-operator")
    assert event["peer"].startswith("127.0.0.1:")


@pytest.mark.needs("curl")
@pytest.mark.parametrize("of_store", [True, False], ids=["of the store", "of the file"])
def test_what_is_watched_by_a_revoked_token_ends(guarded: tuple[str, dict[str, str]], of_store: bool) -> None:
    address, tokens = guarded
    token = created(address)
    credential = f"token:{token['tokenId']}" if of_store else "principal:the-operator"
    text = token["token"] if of_store else tokens["operator"]
    shown = {"Authorization": f"Bearer {text}", "Via": "1.1 proxy"}
    url = f"http://{address}/v1/watch"
    assert ask_get(url, headers={"Via": "1.1 proxy"}).status_code == 401
    with httpx.stream("GET", url, headers=shown, timeout=PATIENCE_S) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("retry: ")
        ask_post(
            f"http://{address}/v1/access/revocations", json={"credential": credential}
        ).raise_for_status()
        assert "access_changed" in "".join(lines)  # which has an end


@pytest.mark.needs("curl")
@pytest.mark.conformance("AC-37")
def test_a_revoked_token_is_refused_by_all_workers(guarded: tuple[str, dict[str, str]]) -> None:
    address, tokens = guarded
    token = created(address)
    assert [put(address, token["token"])[0] for _ in range(10)] == [200] * 10
    for credential in (f"token:{token['tokenId']}", "principal:the-operator"):
        revocation = {"credential": credential}
        ask_post(f"http://{address}/v1/access/revocations", json=revocation).raise_for_status()
    time.sleep(WITHIN_S)
    for revoked in (token["token"], tokens["operator"]):
        assert [put(address, revoked)[0] for _ in range(4)] == [401] * 4
    restored = f"http://{address}/v1/access/revocations/principal%3Athe-operator"
    assert ask_delete(restored).raise_for_status().json()["eventId"]
    time.sleep(
        WITHIN_S
    )  # not asked meanwhile: each refusal is a bad proof, and ten of them shut the host out
    assert put(address, tokens["operator"])[0] == 200


@pytest.mark.needs("curl")
@pytest.mark.conformance("AC-39")
def test_a_host_that_guesses_is_answered_429_and_others_are_not(store: EmbeddedStore, tmp_path: Path) -> None:
    path, tokens = access_file(tmp_path)
    trusted = {"http_trusted_proxies": "127.0.0.0/8", "access_file": str(path)}
    with http_workers(store.url, 1, **trusted) as address:
        there, elsewhere = ("-H", "X-Forwarded-For: 192.0.2.7"), ("-H", "X-Forwarded-For: 192.0.2.8")
        for _ in range(5):
            assert put(address, new_token().token.reveal(), *there)[0] == 401
            guess = ("-H", f"Authorization: Bearer {new_token().token.reveal()}")
            assert curl(*there, *guess, f"http://{address}/v1/whoami")[0] == 401
        status, problem = put(address, new_token().token.reveal(), *there)
        assert (status, problem["type"]) == (429, "urn:redis-namesrv:too-many-requests")
        assert put(address, tokens["operator"], *there)[0] == 429
        assert curl(*there, f"http://{address}/v1/whoami")[0] == 429
        assert put(address, tokens["operator"], *elsewhere)[0] == 200
        assert curl(*there, f"http://{address}/healthz")[0] == 200


@pytest.mark.needs("curl")
@pytest.mark.conformance("AC-39")
@pytest.mark.parametrize("unnamed", [(), ("-H", "X-Forwarded-For: unknown")])
def test_a_trusted_proxy_that_names_no_client_is_not_shut_out(
    store: EmbeddedStore, tmp_path: Path, unnamed: tuple[str, ...]
) -> None:
    path, tokens = access_file(tmp_path)
    with http_workers(store.url, 1, http_trusted_proxies="127.0.0.0/8", access_file=str(path)) as address:
        for _ in range(MOST + 1):
            assert put(address, new_token().token.reveal(), *unnamed)[0] == 401
        assert put(address, tokens["operator"], *unnamed)[0] == 200


@pytest.mark.needs("curl")
@pytest.mark.conformance("AC-40")
def test_while_the_store_is_away_no_caller_is_let_in_and_none_is_cut_off(tmp_path: Path) -> None:
    """The half of HTTP; keys of the wire are the access file's, which needs no store."""
    path, tokens = access_file(tmp_path)
    store = EmbeddedStore(tmp_path / "store", keep=False)
    store.start()
    try:
        with http_workers(store.url, 1, access_file=str(path), access_read="token") as address:
            seen, unseen = created(address, "reader")["token"], created(address, "reader")["token"]
            writer = created(address)["token"]

            def get(token: str) -> tuple[int, str]:
                return curl(*VIA, "-H", f"Authorization: Bearer {token}", f"http://{address}/v1/limits")

            assert (get(seen)[0], put(address, writer)[0]) == (200, 200)
            store.child.signal(signal.SIGSTOP)
            try:
                for token in (tokens["reader"], seen):
                    status, text = get(token)
                    assert (status, "store-unavailable" in text) == (503, True)
                    assert "this token" not in text  # admitted: it is the answer that needs the store
                for refused in (get(unseen), get(new_token().token.reveal())):
                    assert refused[0] == 503
                    assert "this token" in refused[1]
                status, problem = put(address, writer)
                assert (status, "this token" in problem["detail"]) == (503, True)
                assert put(address)[0] == 401
            finally:
                store.child.signal(signal.SIGCONT)
            eventually(lambda: get(unseen)[0] == 200, 10)
    finally:
        store.stop()
    assert SEEN_S == 60


def test_a_process_that_begins_without_the_store_does_not_guess_what_is_revoked(tmp_path: Path) -> None:
    path, tokens = access_file(tmp_path)
    answers: list[Stored | None] = [None, Stored(revoked=frozenset({"principal:the-reader"})), None]

    def follow(take: Take) -> None:
        answer = answers[0]
        if answer is None:
            raise StoreUnavailable("away")
        take(answer)

    here = Tokens(str(path), lambda result: None, follow)
    for token in tokens.values():
        with pytest.raises(StoreUnavailable, match="may have revoked"):
            here.proof(token, reads=True)
    for _ in range(2):
        del answers[0]
        time.sleep(RETRY_S)
        assert here.proof(tokens["operator"], reads=False).actor == "token:the-operator"
        with pytest.raises(BadCredential, match="revoked"):
            here.proof(tokens["reader"], reads=True)


@pytest.mark.needs("curl")
def test_what_is_revoked_stays_so_and_is_noted_again_where_the_key_was_deleted(
    store: EmbeddedStore, redis: redis_py.Redis, tmp_path: Path
) -> None:
    path, tokens = access_file(tmp_path)
    revoked, credential = "ns:{default}:access:revoked", "principal:the-operator"
    with http_workers(store.url, 1, access_file=str(path)) as address:
        body = json.dumps({"credential": credential})
        assert curl(*JSON, "-d", body, f"http://{address}/v1/access/revocations")[0] == 200
        assert put(address, tokens["operator"])[0] == 401
        redis.delete(revoked)
        time.sleep(FRESH_S)
        assert put(address, tokens["operator"])[0] == 401
        assert redis.hexists(revoked, credential)


@pytest.mark.needs("curl")
@pytest.mark.conformance("AC-28")
def test_no_answer_has_a_token_or_its_hash(
    guarded: tuple[str, dict[str, str]], redis: redis_py.Redis
) -> None:
    address, tokens = guarded
    token = created(address)
    secrets = [*tokens.values(), token["token"]]
    hashes = [json.loads(text)["hash"] for text in redis.hvals("ns:{default}:access:tokens")]
    assert len(hashes) == 1
    for path in ("access/principals", "settings", "options", "events", "audit", "doctor", "whoami"):
        text = ask_get(f"http://{address}/v1/{path}").raise_for_status().text
        assert not [secret for secret in (*secrets, *hashes) if secret in text], path
    everything = json.dumps(redis.xrange("ns:{default}:events"))
    assert not [secret for secret in (*secrets, *hashes) if secret in everything]
    assert not [secret for secret in secrets if secret in str(redis.hgetall("ns:{default}:access:tokens"))]


@pytest.mark.needs("curl")
def test_a_bad_token_hurts_where_something_is_changed_and_not_where_reading_is_open(
    guarded: tuple[str, dict[str, str]],
) -> None:
    address, _ = guarded
    bad = {"Authorization": f"Bearer {new_token().token.reveal()}"}
    assert ask_get(f"http://{address}/v1/limits", headers=bad).status_code == 200
    assert ask_put(f"http://{address}/v1/kv/n/k", headers=bad, json={"value": "x"}).status_code == 401
    assert ask_put(f"http://{address}/v1/kv/n/k", json={"value": "x"}).status_code == 200
    for scheme in ("Basic dXNlcjp4", "Bearer", "Token x"):
        other = {"Authorization": scheme}
        assert ask_put(f"http://{address}/v1/kv/n/k", headers=other, json={"value": "x"}).status_code == 401


def test_limits_hold_over_http(store: EmbeddedStore, tmp_path: Path) -> None:
    token = new_token().token.reveal()
    (tmp_path / "t").write_text(token)
    path = tmp_path / "access.toml"
    path.write_text(
        '[principals.team]\nroles = ["operator", "broker"]\ntokens = [{ file = "t" }]\n'
        'limits = { brokers = ["b-*"], topics = ["o-*"], kv = ["team"], clusters = ["c1"] }\n'
    )
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    shown = {"Authorization": f"Bearer {token}", "Via": "1.1 p"}
    with (
        http_workers(store.url, 1, access_file=str(path), access_broker="token") as address,
        httpx.Client(base_url=f"http://{address}", headers=shown, timeout=PATIENCE_S) as http,
    ):

        def register(name: str, *topics: str, cluster: str = "c1") -> int:
            rows = [{"topicName": topic} for topic in topics]
            broker = {
                "cluster": cluster,
                "brokerName": name,
                "brokerAddr": "127.0.0.1:1",
                "brokerId": 0,
                "topics": rows,
            }
            return http.post("/v1/brokers", json=broker).status_code

        assert [register("c-1"), register("b-1", "x"), register("b-1", cluster="c2")] == [403] * 3
        assert register("b-1", "o-1", "o-2") == 200
        drain = {"owner": "o", "reason": "r"}
        assert http.put("/v1/brokers/b-1/drain", json=drain).status_code == 200
        assert http.put("/v1/brokers/c-1/drain", json=drain).status_code == 403
        assert http.put("/v1/kv/team/k", json={"value": "x"}).status_code == 200
        assert http.put("/v1/kv/other/k", json={"value": "x"}).status_code == 403
        assert http.delete("/v1/hold").status_code == 403
        member = {"cluster": "c2", "brokerAddr": "127.0.0.1:1"}
        for body in (b'{"cluster":"c1"}', b"{}", b"[]"):
            named = {"Content-Type": "application/json"}
            left = http.request("DELETE", "/v1/brokers/b-1", params=member, content=body, headers=named)
            assert left.status_code == 403
        both = f"cluster=c2&cluster=c1&brokerAddr={member['brokerAddr']}"
        assert http.delete(f"/v1/brokers/b-1?{both}").status_code == 403


def test_who_may_delete_topics_of_a_cluster_deletes_them_nowhere_else(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    token = new_token().token.reveal()
    (tmp_path / "t").write_text(token)
    path = tmp_path / "access.toml"
    path.write_text(
        '[principals.team]\nroles = ["operator"]\ntokens = [{ file = "t" }]\nlimits = { clusters = ["c1"] }\n'
    )
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    shown = {"Authorization": f"Bearer {token}", "Via": "1.1 p"}
    with http_workers(store.url, 1, access_file=str(path)) as address:
        http = partial(ask_delete, headers=shown)
        for query in ("", "?cluster=c2", "?cluster=c1&cluster=c2", "?cluster=c2&cluster=c1"):
            assert http(f"http://{address}/v1/topics/t{query}").status_code == 403, query
        assert http(f"http://{address}/v1/topics/t?cluster=c1").status_code == 404  # no such topic
