"""Clients that sign their lookups: Java, C++, Go and Node (docs/conformance.md, Access; docs/access.md)."""

import time
from typing import Final

import pytest
from msgspec import Struct

from mqns.remoting.acl import AclCredentials
from testbed.access_file import AccessFile, principal
from testbed.broker import TB, A, Topic
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.process import Process
from testbed.rocketmq.brokers import BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients, Sent, outcome
from testbed.rocketmq.native_clients import Language, send
from testbed.rocketmq.releases import Release, release
from testbed.rocketmq.servers import NameServer, serve
from testbed.rocketmq.stage import Stage
from testbed.sockets import connected_from

SECRET: Final = "of-this-test-0123456789"
NEW_SECRET: Final = "another-0123456789ab"
GOOD: Final = AclCredentials("K", SECRET)
WRONG: Final = AclCredentials("K", NEW_SECRET)
UNKNOWN: Final = AclCredentials("unknown", SECRET)
TOPIC: Final = "ToAll"
QUEUES: Final = {TOPIC: [f"to-all:{number}" for number in range(4)]}
NO_QUEUES: Final[dict[str, list[str]]] = {TOPIC: []}
REFUSED: Final = "access denied: read needs signed; caller wire:127.0.0.1:"
BAD_PROOF: Final = "a signature of 127.0.0.1"
SOME_LOOKUPS_S: Final = 0.5
WITHIN_S: Final = 3.0
"""Two seconds, and one of a loaded machine."""


class Scene(Struct, frozen=True):
    """A broker with a topic at two servers: lookups of one must be signed, those of the other need not be."""

    stage: Stage
    signed: NameServer
    open: NameServer

    def sends(
        self, language: Language, server: NameServer, credentials: AclCredentials | None
    ) -> tuple[Sent, Process]:
        """Return the outcome of a client that sends one message, and its process."""
        client = send(self.stage, language, server, TOPIC, credentials)
        return outcome(client, Sent), client


@pytest.fixture(scope="module")
def scene(stage: Stage, release_4: Release) -> Scene:
    file = AccessFile(stage.folder)
    file.write(principal("client", "reader"), k=SECRET)
    given = {"accessFile": str(file.path), "accessBroker": "open"}
    scene = Scene(
        stage,
        serve(stage, "ours", {**given, "accessRead": "signed"}, name="signed"),
        serve(stage, "ours", {**given, "accessRead": "open"}, name="open"),
    )
    (broker,) = start_brokers(stage, [scene.signed, scene.open], [BrokerConfig(release_4, "to-all")])
    broker.create_topic(TOPIC)
    return scene


@pytest.mark.conformance("AC-04")
@pytest.mark.parametrize("encoding", ["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_java_clients_with_a_key_send(scene: Scene, version: str, encoding: str) -> None:
    options = [f"-Drocketmq.serialize.type={encoding}"]
    clients = Clients(scene.stage, release(version), scene.signed, options, GOOD)
    assert clients.produce(TOPIC, 1).sent == 1
    assert Clients(scene.stage, release(version), scene.signed, options).queues(TOPIC) == NO_QUEUES


@pytest.mark.conformance("AC-05")
def test_a_zone_is_applied_to_a_signed_lookup(scene: Scene, release_5: Release) -> None:
    """5.x adds it after it has signed, and Java's brokers refuse such a client."""
    connection = Connection(scene.signed.port)
    for name in ("z1", "z2"):
        address = f"127.10.0.{name[1]}:10911"
        broker = A.but(name=name, addr=address, zone=name, topics=(Topic("Zoned", queues=1), TB))
        assert broker.register(connection).code == 0
    zone = ["-Drocketmq.zone=z1", "-Drocketmq.zone.mode=true"]
    for options, credentials, queues in (
        (zone, GOOD, ["z1:0"]),
        ([], GOOD, ["z1:0", "z2:0"]),
        (zone, None, []),
    ):
        clients = Clients(scene.stage, release_5, scene.signed, options, credentials)
        assert clients.queues("Zoned") == {"Zoned": queues}


@pytest.mark.conformance("AC-06")
@pytest.mark.parametrize("language", ["cpp", "go", "node"])
def test_other_clients_with_a_key_have_a_route(scene: Scene, language: Language) -> None:
    """Go sends a security token besides, which it does not sign."""
    token = "temporary" if language == "go" else None
    sent, _ = scene.sends(language, scene.signed, AclCredentials("K", SECRET, token))
    assert (sent.sent, sent.last_failure) == (1, "")
    sent, refused = scene.sends(language, scene.signed, UNKNOWN)
    assert sent.sent == 0
    assert REFUSED in said(refused)


def said(client: Process) -> str:
    """Return what a client printed or, if it is C++'s, wrote to its log."""
    logs = (client.folder / "logs" / "rocketmq-cpp").glob("*.log.*")
    return "".join((client.printed(), *(log.read_text(errors="replace") for log in logs)))


@pytest.mark.conformance("AC-07")
def test_a_cpp_client_without_a_key_is_anonymous(scene: Scene) -> None:
    """It signs with an empty key, which is no bad proof, as a wrong secret is."""
    before = scene.signed.process.printed().count(BAD_PROOF)
    sent, client = scene.sends("cpp", scene.signed, None)
    assert sent.sent == 0
    assert REFUSED in said(client)
    assert ",16[getTopicRouteInfoFromNameServer" in said(client)
    assert scene.signed.process.printed().count(BAD_PROOF) == before
    sent, _ = scene.sends("cpp", scene.signed, WRONG)
    assert sent.sent == 0
    eventually(lambda: scene.signed.process.printed().count(BAD_PROOF) > before)


@pytest.mark.conformance("AC-08")
@pytest.mark.parametrize("credentials", [UNKNOWN, WRONG], ids=["unknown key", "wrong signature"])
def test_a_key_is_no_harm_where_none_is_asked_for(
    scene: Scene, release_5: Release, credentials: AclCredentials
) -> None:
    assert Clients(scene.stage, release_5, scene.open, credentials=credentials).queues(TOPIC) == QUEUES
    sent, _ = scene.sends("cpp", scene.open, credentials)
    assert (sent.sent, sent.last_failure) == (1, "")


@pytest.mark.conformance("AC-21")
def test_two_secrets_of_a_key_are_good_until_one_is_removed(stage: Stage, release_5: Release) -> None:
    folder = stage.folder / "two-secrets"
    folder.mkdir()
    file = AccessFile(folder)
    file.write(
        principal("client", "reader", secrets='{ file = "k" }, { file = "n" }'), k=SECRET, n=NEW_SECRET
    )
    given = {"accessFile": str(file.path), "accessBroker": "open", "accessRead": "signed"}
    server = serve(stage, "ours", given, name="rotating")
    broker = Connection(server.port)
    assert A.register(broker).code == 0
    old, new = (
        Clients(stage, release_5, server, ["-Dlog.level=OFF"], AclCredentials("K", secret)).start(
            "Lookups", topic
        )
        for topic, secret in (("TA", SECRET), ("TB", NEW_SECRET))
    )
    for client in (old, new):
        client.await_printed("(?m)^route$", 30)
    before = [connected_from(client.pid, server.port) for client in (old, new)]
    assert all(before)
    file.write(principal("client", "reader", secrets='{ file = "n" }'))
    old.await_printed("CODE: 16  DESC: access denied: read needs signed; caller wire:", WITHIN_S)
    time.sleep(SOME_LOOKUPS_S)
    assert new.printed() == "route\n"
    assert [connected_from(client.pid, server.port) for client in (old, new)] == before
