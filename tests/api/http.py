"""An HTTP client in the test's own process, and the body of a registration."""

import json
from typing import Any, NamedTuple

from flask.testing import FlaskClient

PROBLEM = "application/problem+json"
MASTER = "127.0.1.1:10911"
SLAVE = "127.0.1.2:10911"


class Reply(NamedTuple):
    status: int
    type: str | None
    json: Any
    headers: dict[str, str]


class Http:
    """Requests to one application, with bodies and replies in JSON."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client

    def __call__(self, method: str, path: str, body: object = None, **options: Any) -> Reply:
        if body is not None:
            options["json"] = body
        reply = self.client.open(path, method=method, **options)
        content = json.loads(reply.data) if (reply.mimetype or "").endswith("json") else None
        return Reply(reply.status_code, reply.mimetype, content, dict(reply.headers))

    def ok(self, method: str, path: str, body: object = None) -> Any:
        """Return the reply's JSON; the reply has to be a success."""
        reply = self(method, path, body)
        assert (reply.status, reply.type) == (200, "application/json"), reply
        return reply.json

    def refused(self, method: str, path: str, body: object = None) -> tuple[int, str, str | None]:
        """Return status, end of the problem's type, field; the reply has to be a complete problem document."""
        reply = self(method, path, body)
        assert (reply.type, reply.json["status"]) == (PROBLEM, reply.status), reply
        assert reply.json["title"]
        assert reply.json["detail"]
        return reply.status, reply.json["type"].rpartition(":")[2], reply.json.get("field")


def a_broker(**members: object) -> dict[str, object]:
    """Return the body of a registration: a master with two topics."""
    return {
        "cluster": "c1",
        "brokerName": "broker-a",
        "brokerAddr": MASTER,
        "brokerId": 0,
        "dataVersion": {"timestamp": 1700000000000, "counter": 1},
        "topics": [
            {"topicName": "TopicA", "readQueueNums": 8, "writeQueueNums": 4},
            {"topicName": "TopicB", "perm": 4},
        ],
    } | members


def a_mirrored(**members: object) -> dict[str, object]:
    """Return the body of a mirror's registration: a master with one topic."""
    return {
        "cluster": "c1",
        "brokerName": "broker-m",
        "brokerAddr": "127.0.1.9:10911",
        "brokerId": 0,
        "mirroredFrom": "10.0.0.1:9876",
        "topics": [{"topicName": "TopicM", "readQueueNums": 8, "writeQueueNums": 4}],
    } | members
