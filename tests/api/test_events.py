"""Requests for a checkpoint round; the stream's pages are in test_paging."""

import json

import redis as redis_py

from registry.drivers import run
from registry.events.checkpoint import checkpoint
from registry.keys import Keys
from registry.plans import Origin
from tests.api.http import Http, a_broker


def test_a_round_begins_behind_the_entry_of_the_reply(http: Http, redis: redis_py.Redis, keys: Keys) -> None:
    event_id = http.ok("POST", "/v1/brokers", a_broker())["eventId"]
    assert http.ok("POST", "/v1/events/checkpoints", {}) == {"after": event_id}
    request = json.loads(redis.hget(keys.events_asked, "request") or "")
    assert request["actor"].startswith("http:")
    assert abs(request["at_ms"] - redis.time()[0] * 1000) < 60_000
    run(checkpoint(keys, Origin("op", "job:restate"), slices=100), redis)
    entries = [event["fields"] for event in http.ok("GET", f"/v1/events?after={event_id}")["events"]]
    assert [fields["scope"] for fields in entries] == ["begin", "broker", "topics", "settings", "end"]
    assert {fields["cause"] for fields in entries} == {"request"}


def test_a_stream_that_has_nothing_yet_can_be_asked_too(http: Http) -> None:
    assert http.ok("POST", "/v1/events/checkpoints", {}) == {"after": None}


def test_there_is_nothing_to_choose(http: Http) -> None:
    assert http.refused("POST", "/v1/events/checkpoints", {"cause": "gap"})[:2] == (422, "invalid-field")
