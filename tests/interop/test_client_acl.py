"""Requests that the Python client signs, judged by a broker that demands signatures (ACL 1.0)."""

import asyncio

import pytest

from mqns.remoting.acl import AclCredentials
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, SerializeType
from testbed.rocketmq.brokers import (
    UPDATE_AND_CREATE_TOPIC,
    Broker,
    BrokerConfig,
    new_topic,
    start_brokers,
)
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import NameServer
from testbed.rocketmq.stage import Stage

ACCOUNTS = """\
accounts:
  - accessKey: "python-client"
    secretKey: "top-secret"
    admin: true
"""
CREDENTIALS = AclCredentials("python-client", "top-secret")
UPDATE_BROKER_CONFIG = 25
ADMIN_REQUESTS = {
    "fields": Request(UPDATE_AND_CREATE_TOPIC, new_topic("SignedTopic")),
    "body": Request(UPDATE_BROKER_CONFIG, None, "messageDelayLevel=1s 5s\n# ä\n".encode()),
}


@pytest.fixture(scope="module")
def broker(stage: Stage, server: NameServer, release_4: Release) -> Broker:
    (stage.home / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    config = BrokerConfig(release_4, "broker-acl", cluster="acl", settings={"aclEnable": "true"})
    (broker,) = start_brokers(stage, [server], [config])
    return broker


def asked(
    broker: Broker, request: Request, credentials: AclCredentials | None, encoding: SerializeType
) -> Command:
    """What the broker answers."""

    async def ask() -> Command:
        hooks = (credentials,) if credentials else ()
        async with AsyncRemotingClient(RemotingOptions(hooks=hooks, serialize_type=encoding)) as client:
            return await client.invoke(broker.address, request, timeout_s=30)

    return asyncio.run(ask())


@pytest.mark.parametrize("encoding", SerializeType)
@pytest.mark.parametrize("request_", ADMIN_REQUESTS.values(), ids=ADMIN_REQUESTS.keys())
def test_a_signature_is_accepted(broker: Broker, request_: Request, encoding: SerializeType) -> None:
    answer = asked(broker, request_, CREDENTIALS, encoding)
    assert answer.code == ResponseCode.SUCCESS, answer.remark


@pytest.mark.parametrize("request_", ADMIN_REQUESTS.values(), ids=ADMIN_REQUESTS.keys())
def test_without_or_with_a_wrong_one_it_is_refused(broker: Broker, request_: Request) -> None:
    for credentials in (
        None,
        AclCredentials("python-client", "another"),
        AclCredentials("unknown-key", "top-secret"),
    ):
        answer = asked(broker, request_, credentials, SerializeType.JSON)
        assert answer.code != ResponseCode.SUCCESS
        assert "AclException" in (answer.remark or "")
