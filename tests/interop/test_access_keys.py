"""Peers that sign what they ask a name server (docs/conformance.md, Access; docs/access.md)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed import scrape
from testbed.access_file import AccessFile, principal
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.haproxy import Balancer
from testbed.ports import free_port
from testbed.rocketmq.admin import Admin, run_command
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import NameServer, serve
from testbed.rocketmq.stage import Stage
from tests.interop.events import events

SECRET: Final = "of-this-test-0123456789"
ROUNDS: Final = 4
FIRST_ROUNDS_S: Final = 60.0
ROUNDS_S: Final = 90.0
PROVIDER: Final = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"


@pytest.fixture
def own_stage(tmp_path: Path) -> Iterator[Stage]:
    """For one test: mqadmin finds its keys in the stage's home."""
    with Stage(tmp_path) as stage:
        yield stage


def guarded(stage: Stage, role: str, **rules: str) -> NameServer:
    """Start this server with one principal, whose key is K."""
    file = AccessFile(stage.folder)
    file.write(principal("peer", role), k=SECRET)
    return serve(stage, "ours", {"accessFile": str(file.path), **rules}, name="guarded")


def actors(stage: Stage, kind: str) -> set[str]:
    """Return the actors of all events of a kind."""
    return {event["actor"] for event in events(stage.folder / "guarded" / "data") if event["kind"] == kind}


def give_key_to_mqadmin(stage: Stage) -> None:
    """Make each mqadmin of the stage sign."""
    (stage.home / "conf" / "tools.yml").write_text(f"accessKey: K\nsecretKey: {SECRET}\n")


def signed_broker(stage: Stage, server: NameServer, release: Release) -> Broker:
    """Start a broker of 5.3 or later that signs with the key, and wait until it is registered."""
    settings = {
        "innerClientAuthenticationCredentials": f'{{"accessKey":"K","secretKey":"{SECRET}"}}',
        "authenticationMetadataProvider": PROVIDER,
        "authConfigPath": str(stage.folder / "auth"),
    }
    (broker,) = start_brokers(stage, [server], [BrokerConfig(release, "signed", settings=settings)])
    server.await_brokers("signed", 0)
    return broker


@pytest.mark.conformance("AC-02")
@pytest.mark.parametrize("version", ["release_4", "release_5"])
def test_mqadmin_with_a_key_changes_what_operators_change(
    own_stage: Stage, version: str, request: pytest.FixtureRequest
) -> None:
    release: Release = request.getfixturevalue(version)
    server = guarded(own_stage, "operator", accessAdmin="signed")
    give_key_to_mqadmin(own_stage)
    printed = run_command(
        own_stage, release, server, "updateKvConfig", "-s", "nsé", "-k", "k1", "-v", "välue"
    )
    assert "create or update kv config to namespace success." in printed
    reply = Connection(server.port).ask(RequestCode.GET_KV_CONFIG, {"namespace": "nsé", "key": "k1"})
    assert (reply.code, reply.ext) == (ResponseCode.SUCCESS, {"value": "välue"})
    assert actors(own_stage, "kv_changed") == {"acl:peer"}


@pytest.mark.conformance("AC-13")
def test_an_operator_on_another_machine_needs_tls(own_stage: Stage, release_5: Release) -> None:
    """What a balancer passes on is not of this machine."""
    server = guarded(own_stage, "operator", accessAdmin="signed")
    balancer = Balancer(own_stage, [server])
    give_key_to_mqadmin(own_stage)
    put = "updateKvConfig", "-s", "n", "-k", "k", "-v", "v"
    refused = run_command(own_stage, release_5, balancer, *put)
    assert "CODE: 16  DESC: access denied: admin needs signed over TLS; caller acl:peer" in refused
    assert actors(own_stage, "kv_changed") == set()
    printed = run_command(own_stage, release_5, balancer, *put, options=["-Dtls.enable=true"])
    assert "create or update kv config to namespace success." in printed
    assert actors(own_stage, "kv_changed") == {"acl:peer"}


@pytest.mark.conformance("AC-27")
@pytest.mark.parametrize("settings", [{}, {"configBlackList": ""}], ids=["as it comes", "no black list"])
def test_mqadmin_does_not_open_what_access_closes(
    own_stage: Stage, release_5: Release, settings: dict[str, str]
) -> None:
    server = guarded(own_stage, "admin", accessProfile="secure", **settings)
    give_key_to_mqadmin(own_stage)
    admin = Admin(own_stage, release_5)
    refused = admin(server, "updateNamesrvConfig", "-k", "accessAdmin", "-v", "open")
    assert "CODE: 16  DESC: Can not update config in black list." in refused.err
    allowed = admin(server, "updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true")
    assert "update name server config success!" in allowed.out
    kv = {"namespace": "n", "key": "k", "value": "v"}
    unsigned = Connection(server.port).ask(RequestCode.PUT_KV_CONFIG, kv)
    assert unsigned.code == ResponseCode.NO_PERMISSION


@pytest.mark.conformance("AC-09")
def test_a_broker_with_credentials_is_known_by_them(own_stage: Stage, release_5: Release) -> None:
    """Its 106, each 5 s, is signed too, and its 104 when it ends."""
    server = guarded(own_stage, "broker", accessBroker="signed", accessRead="signed loopback")
    broker = signed_broker(own_stage, server, release_5)
    assert actors(own_stage, "broker_registered") == {"acl:peer"}
    broker.shut_down()
    server.await_brokers("signed")
    assert actors(own_stage, "broker_removed") == {"acl:peer"}


@pytest.mark.conformance("AC-24")
def test_a_broker_with_credentials_takes_the_short_cut(own_stage: Stage, release_5: Release) -> None:
    """It registers each 10 s; bodies and signatures differ each time."""
    port = free_port()
    server = guarded(
        own_stage, "broker", accessBroker="signed", accessRead="signed loopback", httpPort=str(port)
    )

    def registrations() -> tuple[float, float]:
        """How many were answered by their bytes, and how many otherwise."""
        short = scrape.value(port, "cached_requests_total", request_code="103")
        return short, scrape.value(port, "requests_total", request_code="103") - short

    signed_broker(own_stage, server, release_5)
    eventually(lambda: registrations()[0] >= 1, FIRST_ROUNDS_S)
    before, decoded = registrations()
    eventually(lambda: registrations()[0] >= before + ROUNDS, ROUNDS_S)
    assert registrations()[1] == decoded
    assert scrape.value(port, "security_events_total", operation="authn", result="denied") == 0
    assert actors(own_stage, "broker_registered") == {"acl:peer"}
