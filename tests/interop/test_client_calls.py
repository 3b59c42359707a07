"""The Python client against Java's own name servers: every call that the release knows."""

import pytest

from mqns.errors import CallTimeout
from mqns.name_server.client import NameServerClient
from mqns.remoting.options import RemotingOptions
from mqns.remoting.tls import tls_context
from rocketmq_remoting.command import SerializeType
from rocketmq_remoting.version import V5_0_0, V5_5_0
from testbed.rocketmq.stage import Stage
from tests.differential.sides import begin_java, patiently_connected
from tests.mqns.name_server.every_call import play

V4_9_7 = 407
VERSIONS = {"4.9.7": V4_9_7, "5.5.0": V5_5_0}


@pytest.fixture(scope="module")
def addresses(stage: Stage) -> dict[str, str]:
    """Release -> the address of its name server."""
    ports = {release: begin_java(stage, release) for release in VERSIONS}
    for port in ports.values():
        patiently_connected(port).close()
    return {release: f"127.0.0.1:{port}" for release, port in ports.items()}


@pytest.mark.parametrize("encoding", SerializeType)
@pytest.mark.parametrize("release", VERSIONS)
def test_every_call(addresses: dict[str, str], release: str, encoding: SerializeType) -> None:
    options = RemotingOptions(version=VERSIONS[release], serialize_type=encoding)
    with NameServerClient(addresses[release], options=options, timeout_s=30) as ns:
        play(
            lambda name, args, more: getattr(ns, name)(*args, **more),
            VERSIONS[release],
            unregisters_later=VERSIONS[release] >= V5_0_0,
        )


def test_a_call_that_a_release_does_not_know_is_a_time_out_and_harms_no_other(
    addresses: dict[str, str],
) -> None:
    with NameServerClient(addresses["4.9.7"], timeout_s=30) as ns:
        with pytest.raises(CallTimeout):
            ns.within(0.3).get_broker_member_group("c1", "broker-a")
        assert ns.get_topics().topic_list == ()


@pytest.mark.parametrize("release", VERSIONS)
def test_tls(addresses: dict[str, str], release: str) -> None:
    """Java's test mode, which is its default: a certificate that no authority has signed."""
    options = RemotingOptions(tls=tls_context(auth_server=False))
    with NameServerClient(addresses[release], options=options, timeout_s=30) as ns:
        assert ns.get_topics().topic_list == ()
