"""What is added to requests: signatures, zones."""

import base64

import pytest
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.hmac import HMAC

from mqns.remoting.acl import AclCredentials
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from mqns.remoting.zone import Zone, configured_zone
from testbed.network import Network
from tests.mqns.remoting.scene import A, play

CREDENTIALS = AclCredentials("RocketMQ", "12345678")


def by_openssl(data: bytes, key: str) -> str:
    """HMAC-SHA1 in Base64, by a library that shares no code with ours."""
    mac = HMAC(key.encode(), SHA1())
    mac.update(data)
    return base64.b64encode(mac.finalize()).decode()


def test_the_values_of_all_fields_by_name_and_the_body_are_signed() -> None:
    signed = CREDENTIALS(A, Request(105, {"topic": "TopicTest", "a": "é"}, b"\x00body"))
    assert signed.ext == {
        "topic": "TopicTest",
        "a": "é",
        "AccessKey": "RocketMQ",
        "Signature": by_openssl("RocketMQéTopicTest".encode() + b"\x00body", "12345678"),
    }
    assert (signed.code, signed.body) == (105, b"\x00body")


def test_a_security_token_is_signed_too() -> None:
    ext = AclCredentials("RocketMQ", "12345678", "token")(A, Request(106)).ext
    assert ext is not None
    assert ext["SecurityToken"] == "token"
    assert ext["Signature"] == by_openssl(b"RocketMQtoken", "12345678")


def test_signing_twice_is_signing_once() -> None:
    once = CREDENTIALS(A, Request(106))
    assert CREDENTIALS(A, once) == once


def test_a_secret_is_not_shown() -> None:
    assert "12345678" not in f"{CREDENTIALS!r} {CREDENTIALS}"
    assert "12345678" not in repr(RemotingOptions(hooks=(CREDENTIALS,)))


def test_hooks_apply_to_every_request_in_their_order() -> None:
    async def scene(network: Network, client: AsyncRemotingClient) -> None:
        peer = network.serve(A)
        request = Request(105, {"topic": "TA"})
        await client.invoke(A, request)
        await client.invoke_async(A, request)
        await client.invoke_oneway(A, request)
        await client.invoke(A, request)
        assert len(peer.frames) == 4
        for frame in peer.frames:
            ext = frame.command.ext
            assert ext is not None
            assert list(ext) == ["__ZONE_MODE", "__ZONE_NAME", "topic", "AccessKey", "Signature"]
            assert ext["Signature"] == by_openssl(b"RocketMQ" + b"truez1" + b"TA", "12345678")
        assert request.ext == {"topic": "TA"}

    play(scene, RemotingOptions(hooks=(Zone("z1", mode=True), CREDENTIALS)))


@pytest.mark.parametrize(
    ("properties", "environ", "zone"),
    [
        ({}, {}, None),
        ({}, {"ROCKETMQ_ZONE_MODE": "true"}, None),
        ({}, {"ROCKETMQ_ZONE": "z1"}, Zone("z1")),
        ({}, {"ROCKETMQ_ZONE": "z1", "ROCKETMQ_ZONE_MODE": "True"}, Zone("z1", mode=True)),
        (
            {"rocketmq.zone": "z2", "rocketmq.zone.mode": "false"},
            {"ROCKETMQ_ZONE": "z1", "ROCKETMQ_ZONE_MODE": "true"},
            Zone("z2"),
        ),
    ],
)
def test_where_a_zone_is_configured(
    properties: dict[str, str], environ: dict[str, str], zone: Zone | None
) -> None:
    assert configured_zone(properties, environ) == zone
