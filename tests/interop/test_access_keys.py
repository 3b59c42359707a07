"""Peers that sign what they ask a name server (docs/conformance.md, Access; docs/access.md)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from mqnamesrv.store import opened
from registry.keys import Keys
from registry.store.connect import connect
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.connection import Connection
from testbed.rocketmq.admin import run_command
from testbed.rocketmq.brokers import BrokerConfig, start_brokers
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import NameServer, serve
from testbed.rocketmq.stage import Stage

SECRET: Final = "of-this-test-0123456789"
PROVIDER: Final = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """For one test: mqadmin finds its keys in the stage's home."""
    with Stage(tmp_path) as stage:
        yield stage


def guarded(stage: Stage, role: str, **rules: str) -> NameServer:
    """Start this server with one principal, whose key is K."""
    (stage.folder / "k").write_text(SECRET)
    file = stage.folder / "access.toml"
    file.write_text(
        f'[principals.peer]\nroles = ["{role}"]\n'
        'keys = [{ accessKey = "K", secrets = [{ file = "k" }] }]\n'
    )
    for path in (file, stage.folder / "k"):
        path.chmod(0o600)
    return serve(stage, "ours", {"accessFile": str(file), **rules}, name="guarded")


def actors(stage: Stage, kind: str) -> set[str]:
    """Return the actors of all events of a kind."""
    with opened("", stage.folder / "guarded" / "data") as url, connect(url, "default") as store:
        entries: Any = store.xrange(Keys("default").events)
    return {event["actor"] for _, event in entries if event["kind"] == kind}


@pytest.mark.conformance("AC-02")
@pytest.mark.parametrize("version", ["release_4", "release_5"])
def test_mqadmin_with_a_key_changes_what_operators_change(
    stage: Stage, version: str, request: pytest.FixtureRequest
) -> None:
    release: Release = request.getfixturevalue(version)
    server = guarded(stage, "operator", accessAdmin="signed")
    (stage.home / "conf" / "tools.yml").write_text(f"accessKey: K\nsecretKey: {SECRET}\n")
    printed = run_command(stage, release, server, "updateKvConfig", "-s", "nsé", "-k", "k1", "-v", "välue")
    assert "create or update kv config to namespace success." in printed
    reply = Connection(server.port).ask(RequestCode.GET_KV_CONFIG, {"namespace": "nsé", "key": "k1"})
    assert (reply.code, reply.ext) == (ResponseCode.SUCCESS, {"value": "välue"})
    assert actors(stage, "kv_changed") == {"acl:peer"}


@pytest.mark.conformance("AC-09")
def test_a_broker_with_credentials_is_known_by_them(stage: Stage, release_5: Release) -> None:
    """Its 106, each 5 s, is signed too, and its 104 when it ends."""
    server = guarded(stage, "broker", accessBroker="signed", accessRead="signed loopback")
    settings = {
        "innerClientAuthenticationCredentials": f'{{"accessKey":"K","secretKey":"{SECRET}"}}',
        "authenticationMetadataProvider": PROVIDER,
        "authConfigPath": str(stage.folder / "auth"),
    }
    (broker,) = start_brokers(stage, [server], [BrokerConfig(release_5, "signed", settings=settings)])
    server.await_brokers("signed", 0)
    assert actors(stage, "broker_registered") == {"acl:peer"}
    broker.shut_down()
    server.await_brokers("signed")
    assert actors(stage, "broker_removed") == {"acl:peer"}
