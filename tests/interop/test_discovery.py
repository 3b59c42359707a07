"""Brokers and clients whose only setting is the HTTP endpoint with the list of name servers (docs/http-api.md)."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec import Struct

from mqns.addresses.endpoint import AddressEndpoint, endpoint_url
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients, Sent, outcome
from testbed.rocketmq.native_clients import send
from testbed.rocketmq.releases import dashed, release
from testbed.rocketmq.servers import BOOT_S, NameServer, Several, serve
from testbed.rocketmq.stage import Stage

MESSAGES = 20
ASKED_WITHIN_S = 90
"""A broker asks first 10 s after its start, and registers with its next round."""
VERSIONS = ("4.9.7", "5.5.0")
NO_ADDRESS = Several(())


class Endpoint(Struct, frozen=True):
    """What a client has in place of addresses: `address` is the endpoint's URL."""

    domain: str

    @property
    def address(self) -> str:
        return endpoint_url({"rocketmq.namesrv.domain": self.domain})

    @property
    def setting(self) -> str:
        """Return the option of a JVM."""
        return f"-Drocketmq.namesrv.domain={self.domain}"


class Scene(Struct, frozen=True):
    """A name server, the endpoint that answers it, and brokers of both releases that know that endpoint only.

    `of_units` is the endpoint of another name server, which answers itself but to clients of the unit blue."""

    stage: Stage
    server: NameServer
    endpoint: Endpoint
    of_units: Endpoint
    brokers: dict[str, Broker]

    def exchange(self, version: str, topic: str, options: Sequence[str]) -> tuple[int, int]:
        """Return how many messages a producer sent, and how many a consumer received."""
        clients = Clients(self.stage, release(version), NO_ADDRESS, options)
        return clients.produce(topic, MESSAGES).sent, clients.consume(topic, MESSAGES).distinct


def endpoint_of(server: NameServer) -> Endpoint:
    return Endpoint(server.process.await_printed(r"ready remoting=\S+ http=(\S+)", BOOT_S)[1])


@pytest.fixture(scope="module")
def scene(stage: Stage) -> Scene:
    server = serve(stage, "ours", name="asked")
    endpoint = endpoint_of(server)
    units = {"discoveryUnits": f"blue={server.address}"}
    of_units = endpoint_of(serve(stage, "ours", units, name="of-units"))
    ways = {
        "4.9.7": (of_units.setting, "-Drocketmq.namesrv.domain.subgroup=nsaddr-blue"),
        "5.5.0": (endpoint.setting,),
    }
    brokers = {
        version: start_brokers(
            stage,
            [],
            [
                BrokerConfig(
                    release(version),
                    f"asking-{dashed(version)}",
                    settings={"fetchNamesrvAddrByAddressServer": "true"},
                )
            ],
            options,
        )[0]
        for version, options in ways.items()
    }
    for version, broker in brokers.items():
        server.await_brokers(broker.config.name, 0, within_s=ASKED_WITHIN_S)
        broker.create_topic(f"On-{dashed(version)}")
    return Scene(stage, server, endpoint, of_units, brokers)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_java_broker_producer_and_consumer_know_the_endpoint_only(scene: Scene, version: str) -> None:
    """The broker of 4.9.7, which tells no unit, has that of its subgroup."""
    topic = f"On-{dashed(version)}"
    assert scene.exchange(version, topic, [scene.endpoint.setting]) == (MESSAGES, MESSAGES)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_java_client_of_a_unit_has_the_name_servers_of_its_unit(scene: Scene, version: str) -> None:
    topic = f"On-{dashed(version)}"
    setting = scene.of_units.setting
    assert scene.exchange(version, topic, [setting, "-Dunit=blue"]) == (MESSAGES, MESSAGES)
    producer = Clients(scene.stage, release(version), NO_ADDRESS, [setting, "-Dunit=green"]).start(
        "Produce", topic, 1, 0
    )
    sent = outcome(producer, Sent)
    assert sent.sent == 0
    assert "No route info of this topic" in sent.last_failure


def test_a_go_client_knows_the_endpoint_only(scene: Scene) -> None:
    sent = outcome(send(scene.stage, "go", scene.endpoint, "On-5-5-0"), Sent)
    assert (sent.sent, sent.last_failure) == (1, "")


def test_our_own_client_reads_the_list_too(scene: Scene) -> None:
    assert asyncio.run(AddressEndpoint(scene.endpoint.address).fetch()) == (scene.server.address,)
