"""Owners of brokers over HTTP: what is for another is forbidden (docs/access.md)."""

import pytest
import redis as redis_py

from access.principal import Principal
from access.proof import Proof
from access.roles import Role
from api.app import create_app
from api.caller import PROOF
from registry.events.entry import Event
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.ownership import ReportedRefusals
from tests.api.http import MASTER, Http, a_broker

HEARTBEAT, MEMBER = "/v1/brokers/broker-a/heartbeat", {"cluster": "c1", "brokerAddr": MASTER}
LEAVE = f"/v1/brokers/broker-a?cluster=c1&brokerAddr={MASTER}"
THERE = {"REMOTE_ADDR": "10.0.0.5"}
MOVED = a_broker(brokerAddr="10.0.0.5:10911")


@pytest.fixture
def http(redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch) -> Http:
    monkeypatch.setattr("api.name_server._refusals", ReportedRefusals())
    return guarded(redis)


def guarded(redis: redis_py.Redis, access_mode: str = "enforce") -> Http:
    options = Options(ownership_guard=True, access_mode=access_mode)
    return Http(create_app(options, redis=redis).test_client())


def test_what_takes_a_living_brokers_place_is_for_its_host(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    for method, path, body in (("POST", "/v1/brokers", MOVED), ("DELETE", LEAVE, None)) * 2:
        refused = http(method, path, body, environ_overrides=THERE)
        assert (refused.status, refused.json["type"]) == (403, "urn:redis-namesrv:forbidden")
        assert refused.json["detail"] == (
            "access denied: broker needs the owner of broker-a; caller http:10.0.0.5"
        )
    assert http.ok("GET", "/v1/brokers/broker-a")["members"][0]["brokerAddr"] == MASTER
    causes = [Event.of(*entry).cause for entry in redis.xrange(Keys().events)]  # type: ignore[union-attr]
    assert causes.count("ownership") == 1  # all are about one member
    http.ok("POST", "/v1/brokers", MOVED)
    http.ok("DELETE", LEAVE.replace(MASTER, "10.0.0.5:10911"))


def test_while_it_observes_all_is_for_all(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    observing = guarded(redis, access_mode="observe")
    assert observing("POST", "/v1/brokers", MOVED, environ_overrides=THERE).status == 200
    assert http.ok("GET", "/v1/brokers/broker-a")["members"][0]["brokerAddr"] == MOVED["brokerAddr"]


def test_others_renew_it(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    assert http("POST", HEARTBEAT, MEMBER, environ_overrides=THERE).status == 200
    assert http("POST", "/v1/brokers", a_broker(), environ_overrides=THERE).status == 200


def test_a_principals_broker_is_renewed_by_that_principal_only(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    redis.hset(Keys().member(f"c1:{MASTER}"), "registrant", "principal:p")
    assert http.refused("POST", HEARTBEAT, MEMBER)[:2] == (403, "forbidden")


def test_the_token_of_a_reader_claims_no_broker(http: Http, redis: redis_py.Redis) -> None:
    """A principal may take what a host registered, but only one that brokers are known by."""
    http.ok("POST", "/v1/brokers", a_broker())

    def shown_by(role: Role) -> dict[str, object]:
        return THERE | {PROOF: Proof("token", Principal("p", frozenset({role})), "token:t")}

    assert http("POST", "/v1/brokers", MOVED, environ_overrides=shown_by(Role.READER)).status == 403
    assert http("POST", "/v1/brokers", MOVED, environ_overrides=shown_by(Role.BROKER)).status == 200


def test_a_principal_has_its_hosts_address_though_another_host_was_there_first(http: Http) -> None:
    here = {"REMOTE_ADDR": MASTER.rpartition(":")[0]}
    proof = Proof("token", Principal("p", frozenset({Role.BROKER})), "token:t")
    http.ok("POST", "/v1/brokers", a_broker(brokerName="made-up"))
    shown = {"environ_overrides": here | {PROOF: proof}}
    assert http("POST", "/v1/brokers", a_broker(), environ_overrides=THERE).status == 403
    assert http("POST", "/v1/brokers", a_broker(), **shown).status == 200
    assert http("POST", HEARTBEAT, MEMBER).status == 403


def test_a_host_is_the_same_over_a_port_for_ipv4_and_ipv6(http: Http) -> None:
    """Else it did not own its own address: whoever renewed its broker had it."""
    mapped = {"REMOTE_ADDR": f"::ffff:{MASTER.rpartition(':')[0]}"}
    assert http("POST", "/v1/brokers", a_broker(), environ_overrides=mapped).status == 200
    assert http("POST", "/v1/brokers", a_broker(), environ_overrides=THERE).status == 200
    assert http("DELETE", LEAVE, environ_overrides=THERE).status == 403


def test_a_peer_without_an_address_is_a_host_of_its_own(http: Http, redis: redis_py.Redis) -> None:
    reply = http("POST", "/v1/brokers", a_broker(), environ_overrides={"REMOTE_ADDR": ""})
    assert reply.status == 200
    assert redis.hget(Keys().member(f"c1:{MASTER}"), "registrant") == "host:unix"


def test_with_refused_conflicts_an_id_and_a_name_stay_where_they_are(
    redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.name_server._refusals", ReportedRefusals())
    http = Http(create_app(Options(identity_conflicts="refuse"), redis=redis).test_client())
    http.ok("POST", "/v1/brokers", a_broker())
    for path in ("/v1/brokers?dryRun=true", "/v1/brokers", "/v1/brokers"):
        assert http.refused("POST", path, MOVED) == (409, "identity-conflict", None)
    second = a_broker(brokerAddr="10.0.0.5:10911", brokerId=1, cluster="c2")
    assert http.refused("POST", "/v1/brokers", second) == (409, "identity-conflict", None)
    seen = [Event.of(*entry) for entry in redis.xrange(Keys().events)]  # type: ignore[union-attr]
    causes = [event.cause for event in seen if event.kind == "conflict_seen"]
    assert causes == ["two_addresses"]  # the other one is about the same member
    http.ok("POST", "/v1/brokers", a_broker(topics=[]))
    findings = {one["check"]: one["what"] for one in http.ok("GET", "/v1/doctor")["findings"]}
    refused = f"10.0.0.5:10911 as broker-a (id 0 in c1), which {MASTER} has"
    assert findings["broker-refused"] == f"brokers are refused, since others have their places: {refused}"
