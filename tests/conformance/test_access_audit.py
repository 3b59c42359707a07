"""What the event stream and audit say of access: refusals of known callers, ends, changes of rules."""

import json
import time
from datetime import UTC, datetime
from typing import Any, Final

from rocketmq_remoting.codes import RequestCode
from testbed.access_file import AccessFile, principal
from testbed.broker import A, Topic
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from tests.conformance.test_access_keys import (
    DONE,
    OTHER,
    PUT,
    REFUSED,
    SECRET,
    Start,
    ask,
    code_of,
    file,
    lookup,
    signed,
    start,
)

__all__ = ["file", "start"]

WRITTEN_S: Final = 25.0
"""Written each ten seconds, on a loaded machine."""


def entries(server: NameServer, cause: str, stream: str = "events") -> list[dict[str, Any]]:
    with server.store() as store:
        found = store.xrange(getattr(server.keys, stream))
    return [event for _, event in found if event["kind"].startswith("access_") and event["cause"] == cause]


def of_both_workers(server: NameServer) -> list[Connection]:
    """Return connections to each of two workers, which share them as they come."""
    connections: list[Connection] = []

    def are_both() -> bool:
        connections.append(Connection(server.port))
        return len({server.worker_of(connection) for connection in connections}) == 2

    eventually(are_both)
    return connections


def test_refusals_of_a_known_caller_are_one_entry_of_all_workers(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    server = start(accessAdmin="signed", remotingWorkers="2")
    connections = of_both_workers(server)
    for connection in connections:
        for _ in range(5):
            assert code_of(connection, signed(RequestCode.PUT_KV_CONFIG, PUT)) == REFUSED
            assert code_of(connection, signed(RequestCode.PUT_KV_CONFIG, PUT, secret=OTHER)) == REFUSED
    assert code_of(connections[0], signed(RequestCode.DELETE_KV_CONFIG, PUT)) == REFUSED

    def by_operation() -> dict[str, dict[str, Any]]:
        return {event["operation"]: event for event in entries(server, "denied", "audit")}

    eventually(lambda: by_operation().keys() == {"100", "102"}, WRITTEN_S)
    event = by_operation()["100"]
    assert (event["kind"], event["actor"], event["class"]) == ("access_denied", "acl:client", "admin")
    assert event["peer"] in {f"127.0.0.1:{connection.local[1]}" for connection in connections}
    key = server.keys.access_denied("acl:client", "100")

    def left() -> int:
        with server.store() as store:
            return int(str(store.get(key)).split()[1])

    eventually(lambda: int(event["count"]) + left() == 5 * len(connections), WRITTEN_S)
    assert len(entries(server, "denied")) == 2
    assert SECRET not in json.dumps(entries(server, "denied"))


def test_while_it_observes_no_caller_is_denied(start: Start, file: AccessFile) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    server = start(accessAdmin="signed", accessMode="observe", remotingWorkers="1")
    assert code_of(Connection(server.port), signed(RequestCode.PUT_KV_CONFIG, PUT)) == DONE
    server.stop()
    assert entries(server, "denied") == []
    assert (
        server.said().count("signed over TLS, with a role for it; caller acl:client, answered all the same")
        == 1
    )
    server.start()  # the fixture ends it


def test_while_it_observes_topics_beyond_limits_are_registered_and_logged(
    start: Start, file: AccessFile
) -> None:
    file.write(principal("team", "broker", more='limits = { topics = ["o-*"] }'), k=SECRET)
    server = start(accessBroker="signed", accessMode="observe", remotingWorkers="1")
    broker = A.but(topics=(Topic("o-1"), Topic("x")))
    body = broker.body()
    answer = ask(Connection(server.port), signed(RequestCode.REGISTER_BROKER, broker.ext(body), body))
    assert (answer.code, answer.remark) == (DONE, None)
    remark = "broker needs signed, for names within its limits; caller acl:team, answered all the same"
    assert server.said().count(remark) == 1
    server.stop()
    assert entries(server, "denied") == []
    server.start()  # the fixture ends it


def test_a_broker_whose_topics_are_beyond_limits_is_told_of(start: Start, file: AccessFile) -> None:
    file.write(principal("team", "broker", more='limits = { topics = ["o-*"] }'), k=SECRET)
    server = start(accessBroker="signed", remotingWorkers="1")
    broker = A.but(topics=(Topic("o-1"), Topic("x")))
    body = broker.body()
    request = signed(RequestCode.REGISTER_BROKER, broker.ext(body), body)
    assert code_of(Connection(server.port), request) == REFUSED
    eventually(lambda: entries(server, "denied"), WRITTEN_S)
    (event,) = entries(server, "denied")
    assert (event["operation"], event["actor"], event["class"]) == ("103", "acl:team", "broker")


def test_an_end_and_a_change_of_the_file_are_told_once(start: Start, file: AccessFile) -> None:
    ends = time.time() + 3
    at = f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%dT%H:%M:%SZ}"
    secrets = f'{{ file = "k", expires = {at} }}, {{ file = "n" }}'
    file.write(principal("client", "reader", secrets=secrets), k=SECRET, n=OTHER)
    server = start(remotingWorkers="2", accessRead="signed")
    eventually(lambda: entries(server, "expired"), ends - time.time() + WRITTEN_S)
    (event,) = entries(server, "expired")
    assert (event["principal"], event["credential"]) == ("client", "acl:K#k")
    assert abs(int(event["expires_ms"]) / 1000 - ends) <= 1
    assert event["actor"].startswith("worker:")
    assert entries(server, "rules") == []
    file.write(principal("client", "reader", secrets='{ file = "n" }') + principal("new", "broker", key="N"))
    eventually(lambda: entries(server, "rules"), WRITTEN_S)
    server.stop()  # each worker writes at its end
    (event,) = entries(server, "rules")
    assert (json.loads(event["added"]), json.loads(event["changed"])) == (["new"], ["client"])
    assert json.loads(event["changes"]).keys() == {"principals"}
    assert len(entries(server, "expired")) == 1
    server.start()  # the fixture ends it


def test_a_start_with_other_rules_is_told_and_one_with_the_same_is_not(
    start: Start, file: AccessFile
) -> None:
    file.write(principal("client", "reader"), k=SECRET)
    server = start(remotingWorkers="2")
    server.stop()
    assert entries(server, "rules") == []  # of the first start, nothing was before
    server.options |= {"accessRead": "signed"}
    for _ in range(2):
        server.start()
        assert code_of(Connection(server.port), lookup()) != REFUSED
        server.stop()
        (event,) = entries(server, "rules")
        assert json.loads(event["changes"]) == {"accessRead": ["open", "signed"]}
    server.start()  # the fixture ends it
