"""`?dryRun=true`: the answer of the change that follows, and a store as it was."""

from collections import Counter
from typing import Any

import pytest
import redis as redis_py

from api import dry_run_answers
from api.access_classes import CONSOLE, HTTP
from api.app import create_app
from api.methods import SAFE
from registry import route_changes
from registry.drivers import run
from registry.expiry.worker_lease import tick
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from tests.api.http import MASTER, SLAVE, Http, Reply, a_broker, a_mirrored
from tests.registry.test_dry_run import contents

MEMBER = {"cluster": "c1", "brokerAddr": MASTER}
OF_MEMBER = f"cluster=c1&brokerAddr={MASTER}"
QUEUES = {"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8}
MIRRORED = a_mirrored()
MIRRORED_MEMBER = {name: MIRRORED[name] for name in ("cluster", "brokerName", "brokerId", "brokerAddr")}
OF_MIRRORED = f"cluster=c1&brokerAddr={MIRRORED['brokerAddr']}&mirroredFrom={MIRRORED['mirroredFrom']}"
REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/v1/brokers", a_broker()),
    ("POST", "/v1/brokers", a_broker()),
    ("POST", "/v1/brokers", a_broker(brokerAddr=SLAVE, brokerId=1, topics=[])),
    ("POST", "/v1/brokers", a_broker(brokerAddr="127.0.1.3:10911", brokerName="")),
    ("POST", "/v1/brokers/broker-a/heartbeat", MEMBER),
    ("POST", "/v1/brokers/broker-z/heartbeat", MEMBER),
    ("POST", "/v1/brokers/broker-a/write-permission", {"writable": False}),
    ("POST", "/v1/brokers/broker-a/write-permission", {"writable": True}),
    ("PUT", "/v1/brokers/broker-a/drain", {"owner": "o", "reason": "r", "untilMillis": None}),
    ("PUT", "/v1/brokers/broker-a/drain", {"owner": "o", "reason": "r", "untilMillis": 1}),
    ("DELETE", "/v1/brokers/broker-a/drain", None),
    ("DELETE", "/v1/brokers/broker-z/drain", None),
    ("POST", "/v1/mirrored-brokers", MIRRORED),
    ("POST", "/v1/mirrored-brokers", MIRRORED),
    ("POST", "/v1/mirrored-brokers", a_broker(mirroredFrom="10.0.0.1:9876", dataVersion=None)),
    ("POST", "/v1/mirrored-brokers", a_mirrored(brokerName="broker-a", brokerAddr=MASTER)),
    ("POST", "/v1/mirrored-brokers/heartbeats", {"members": [MIRRORED_MEMBER]}),
    ("DELETE", f"/v1/mirrored-brokers?{OF_MIRRORED}", None),
    ("DELETE", f"/v1/mirrored-brokers?{OF_MIRRORED}", None),
    ("PUT", "/v1/topics/New", {"queueDatas": [QUEUES]}),
    ("PUT", "/v1/topics/New", {"queueDatas": [QUEUES | {"brokerName": "broker-z"}]}),
    ("DELETE", "/v1/topics/New?cluster=c1", None),
    ("DELETE", "/v1/topics/New", None),
    ("PUT", "/v1/kv/n", {"table": {"a": "1", "b": "2"}}),
    ("PUT", "/v1/kv/n", {"table": {"b": "3", "c": "4"}}),
    ("PUT", "/v1/kv/n/k", {"value": "v"}),
    ("PUT", "/v1/kv/n/k", {"value": "v" * 100_000}),
    ("DELETE", "/v1/kv/n/k", None),
    ("DELETE", "/v1/kv/n/k", None),
    ("DELETE", "/v1/kv/n?all=true", None),
    ("DELETE", "/v1/kv/n", None),
    ("PUT", "/v1/drift/d", {"nameServers": [MASTER, SLAVE], "validForSeconds": 60}),
    (
        "PUT",
        "/v1/drift/d",
        {"nameServers": [MASTER, SLAVE], "validForSeconds": 60, "counts": {"kv-differs": 1}},
    ),
    ("DELETE", "/v1/drift/d", None),
    ("DELETE", "/v1/drift/d", None),
    ("PATCH", "/v1/settings", {"settings": {"orderMessageEnable": True}}),
    ("PATCH", "/v1/settings", {"settings": {"none": True}}),
    ("DELETE", "/v1/hold", None),
    ("POST", "/v1/events/checkpoints", {}),
    ("POST", "/v1/access/revocations", {"credential": "principal:none"}),
    ("POST", "/v1/access/tokens/none/rotate", {}),
    ("DELETE", "/v1/access/revocations/principal:none", None),
    ("DELETE", f"/v1/brokers/broker-a?{OF_MEMBER}", None),
    ("DELETE", f"/v1/brokers/broker-a?{OF_MEMBER}", None),
]


def dry(path: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}dryRun=true"


def said(reply: Reply) -> tuple[int, Any]:
    """Return the status and all that an answer says but the id of its entry and what only a dry run says."""
    rest = {name: member for name, member in reply.json.items() if name not in ("eventId", "dryRun")}
    return reply.status, rest


def test_each_request_is_answered_as_the_change_that_follows(http: Http, redis: redis_py.Redis) -> None:
    for method, path, body in REQUESTS:
        newest: Any = redis.xrevrange(Keys().events, count=1)
        stored = contents(redis)
        answer = http(method, dry(path), body)
        assert contents(redis) == stored, (method, path)
        change = http(method, path, body)
        assert said(answer) == said(change), (method, path)
        appended: Any = redis.xrange(Keys().events, min="(" + newest[0][0] if newest else "-")
        if change.status == 200:
            assert answer.json.get("eventId") is None
            events = Counter(fields["kind"] for _, fields in appended)
            assert answer.json["dryRun"]["events"] == events, (method, path)


def test_all_requests_that_change_something_are_tried(http: Http) -> None:
    app = http.client.application
    tried = {
        app.url_map.bind("localhost").match(path.partition("?")[0], method=method)[0]
        for method, path, _ in REQUESTS
    }
    changing = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if (rule.methods or set()) - SAFE and rule.endpoint in HTTP.keys() - CONSOLE
    }
    assert changing - tried == {"access.create_token"}  # whose answer is never the same


def test_a_token_of_a_dry_run_is_none(http: Http, redis: redis_py.Redis) -> None:
    http.ok("PUT", "/v1/kv/n/k", {"value": "v"})  # so that there is a stream
    stored = contents(redis)
    body = {"principal": "ops", "roles": ["admin"]}
    created = http.ok("POST", "/v1/access/tokens?dryRun=true", body)
    assert (created["token"], created["principal"], created["roles"]) == ("", "ops", ["admin"])
    assert created["dryRun"]["events"] == {"access_changed": 1}
    assert contents(redis) == stored


def test_what_a_dry_run_finds_refused_has_the_problem_of_the_change(http: Http) -> None:
    http.ok("PUT", "/v1/kv/n/k", {"value": "v"})
    tagged = http("PUT", "/v1/kv/n/k?dryRun=true", {"value": "w"}, headers={"If-Match": '"other"'})
    assert (tagged.status, tagged.json["type"]) == (412, "urn:redis-namesrv:condition-failed")
    assert tagged.headers["ETag"]
    assert http.ok("GET", "/v1/kv/n/k")["value"] == "v"


@pytest.mark.parametrize("query", ["dryRun=yes", "dryRun=", "dryRun=true&dryRun=true", "dryrun=true"])
def test_another_value_is_refused_and_nothing_is_done(http: Http, query: str) -> None:
    status, kind, field = http.refused("PUT", f"/v1/kv/n/k?{query}", {"value": "v"})
    assert (status, kind, field) == (422, "invalid-field", query.partition("=")[0])
    assert http("GET", "/v1/kv/n/k").status == 404


def test_without_it_the_change_is_made_and_answered_as_ever(http: Http) -> None:
    written = http.ok("PUT", "/v1/kv/n/k?dryRun=false", {"value": "v"})
    assert set(written) == {"eventId"}
    assert http.ok("GET", "/v1/kv/n/k")["value"] == "v"


def test_a_read_has_no_dry_run(http: Http) -> None:
    assert http.refused("GET", "/v1/kv?dryRun=true") == (422, "invalid-field", "dryRun")


def test_a_dry_run_counts_as_a_read(redis: redis_py.Redis) -> None:
    run(tick(Keys(), "w1", Origin("w1-1", "worker:w1")), redis)
    options = Options(http_writes_per_second=1, http_reads_per_second=3)
    http = Http(create_app(options, redis=redis).test_client())
    answers = [http("PUT", "/v1/kv/n/k?dryRun=true", {"value": "v"}).status for _ in range(7)]
    assert answers == [200] * 6 + [429]  # two seconds' reads at once
    assert http("PUT", "/v1/kv/n/k", {"value": "v"}).status == 200


def test_a_dry_run_needs_the_access_of_the_change(redis: redis_py.Redis) -> None:
    http = Http(create_app(Options(access_admin="token"), redis=redis).test_client())
    assert http("PUT", "/v1/kv/n/k?dryRun=true", {"value": "v"}).status == 401


def test_the_document_has_the_parameter_of_each_change(http: Http) -> None:
    spec = http.ok("GET", "/openapi.json")
    for path in spec["paths"].values():
        for method, operation in path.items():
            names = [parameter["name"] for parameter in operation["parameters"]]
            assert ("dryRun" in names) is (method not in ("get", "head"))


def routes_of(http: Http, method: str, path: str, body: object = None) -> Any:
    return http.ok(method, dry(path), body)["dryRun"]["routes"]


def test_it_says_which_routes_change_end_and_cannot_be_written_to(http: Http) -> None:
    """TopicA: 8 read and 4 write queues; TopicB: 16 read queues, no write permission."""
    http.ok("POST", "/v1/brokers", a_broker())
    drained = routes_of(http, "PUT", "/v1/brokers/broker-a/drain", {"owner": "o", "reason": "r"})
    one = {"count": 1, "names": ["TopicA"]}
    none: dict[str, Any] = {"count": 0, "names": []}
    assert drained == {
        "changed": one,
        "ended": none,
        "unwritable": one,
        "readQueues": {"before": 8, "after": 8},
        "writeQueues": {"before": 4, "after": 0},
        "unexamined": 0,
    }
    wiped = routes_of(http, "POST", "/v1/brokers/broker-a/write-permission", {"writable": False})
    assert wiped == drained
    removed = routes_of(http, "DELETE", f"/v1/brokers/broker-a?{OF_MEMBER}")
    both = {"count": 2, "names": ["TopicA", "TopicB"]}
    assert removed == {
        "changed": both,
        "ended": both,
        "unwritable": one,
        "readQueues": {"before": 24, "after": 0},
        "writeQueues": {"before": 4, "after": 0},
        "unexamined": 0,
    }
    ordered = routes_of(http, "PUT", "/v1/kv/ORDER_TOPIC_CONFIG/TopicB", {"value": "broker-a:4"})
    assert (ordered["changed"], ordered["ended"]) == ({"count": 1, "names": ["TopicB"]}, none)


def test_a_slave_without_its_master_is_read_from_only(http: Http) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers", a_broker(brokerAddr=SLAVE, brokerId=1, topics=[]))
    left = http.ok("DELETE", dry(f"/v1/brokers/broker-a?{OF_MEMBER}"))["dryRun"]
    assert left["brokers"] == {"count": 1, "names": ["broker-a"]}
    assert left["routes"]["changed"]["count"] == 2
    assert left["routes"]["ended"]["count"] == 0
    assert left["routes"]["unwritable"] == {"count": 1, "names": ["TopicA"]}
    assert left["routes"]["readQueues"] == {"before": 24, "after": 24}


def test_names_are_the_first_ten_and_counts_are_of_all(http: Http) -> None:
    topics = [{"topicName": f"T{number:02}"} for number in range(250)]
    http.ok("POST", "/v1/brokers", a_broker(topics=topics))
    routes = routes_of(http, "DELETE", f"/v1/brokers/broker-a?{OF_MEMBER}")
    assert routes["ended"] == {
        "count": 250,
        "names": [f"T{number:02}" for number in range(10)],
    }


def test_no_more_routes_are_read_than_a_question_is_worth(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    monkeypatch.setattr(route_changes, "TOPICS_EXAMINED", 1)
    routes = routes_of(http, "DELETE", f"/v1/brokers/broker-a?{OF_MEMBER}")
    assert (routes["changed"]["names"], routes["unexamined"]) == (["TopicA"], 1)


def test_names_are_for_callers_that_may_read_them(http: Http, redis: redis_py.Redis) -> None:
    http.ok("POST", "/v1/brokers", a_broker())
    writing = Http(create_app(Options(access_read="token", access_broker="open"), redis=redis).test_client())
    assert writing("GET", "/v1/topics").status == 401
    routes = routes_of(writing, "DELETE", f"/v1/brokers/broker-a?{OF_MEMBER}")
    assert routes["ended"] == {"count": 2, "names": []}


def test_two_are_under_way_at_once_and_each_makes_way(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that asks meanwhile is answered, one that asks within that is not."""
    within: list[Reply] = []
    changes = route_changes.route_changes

    def asking(*args: Any) -> Any:
        if len(within) < 2:
            within.append(http("PUT", "/v1/kv/n/k?dryRun=true", {"value": "v"}))
        return changes(*args)

    monkeypatch.setattr(dry_run_answers, "route_changes", asking)
    assert http("PUT", "/v1/kv/n/k?dryRun=true", {"value": "v"}).status == 200
    assert [reply.status for reply in within] == [429, 200]
    for _ in range(3):
        http.ok("PUT", "/v1/kv/n/k?dryRun=true", {"value": "v"})
        assert http.refused("DELETE", "/v1/kv/none/k?dryRun=true")[0] == 404
