"""Peers that are refused, and go on (docs/conformance.md, Access; docs/access.md)."""

import time
from typing import Final

import pytest

from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.haproxy import Balancer, Proxy
from testbed.rocketmq.admin import run_command
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients, Sent, outcome
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import NameServer, serve
from testbed.rocketmq.stage import Stage
from tests.interop.traffic import end_producer, start_producer

ROUND_S: Final = 10.0
"""Between two registrations of a broker here."""
RUNNING_S: Final = 60.0


class Guarded:
    """This name server at one port over one store, which is started again with other rules."""

    def __init__(self, stage: Stage, name: str, **rules: str) -> None:
        self._stage, self._name, self._starts = stage, name, 0
        self.server = self._start(rules, "0")

    @property
    def address(self) -> str:
        return self.server.address

    def change(self, **rules: str) -> None:
        """Start it again with these rules."""
        self.server.process.ask_to_end(60)
        self.server = self._start(rules, str(self.server.port))

    def _start(self, rules: dict[str, str], port: str) -> NameServer:
        self._starts += 1
        data = self._stage.folder / self._name / "data"
        given = {"listenPort": port, "dataDir": str(data), "shutdownWaitTimeSeconds": "1", **rules}
        return serve(self._stage, "ours", given, name=f"{self._name}-{self._starts}")


def refusals(broker: Broker) -> int:
    """How often a broker has logged that it was refused."""
    return broker.process.printed().count("access denied: broker needs signed")


@pytest.mark.conformance("AC-03")
@pytest.mark.parametrize("version", ["release_4", "release_5"])
def test_mqadmin_without_a_key_changes_nothing(
    stage: Stage, version: str, request: pytest.FixtureRequest
) -> None:
    release: Release = request.getfixturevalue(version)
    guarded = Guarded(stage, f"admin-{release.version}", accessAdmin="signed")
    put = "-s", "n", "-k", "k", "-v", "välue"
    printed = run_command(stage, release, guarded.server, "updateKvConfig", *put)
    assert "CODE: 16  DESC: access denied: admin needs signed over TLS; caller wire:127.0.0.1:" in printed
    connection = Connection(guarded.server.port)
    reply = connection.ask(RequestCode.GET_KV_CONFIG, {"namespace": "n", "key": "k"})
    assert reply.code == ResponseCode.QUERY_NOT_FOUND


@pytest.mark.conformance("AC-10", "AC-11")
def test_brokers_without_a_key_run_on_and_are_in_with_the_next_round_once_they_may(
    stage: Stage, release_4: Release, release_5: Release
) -> None:
    """One of 4.9.7 with forceRegister=false would never register again if its data version were refused (observed)."""
    guarded = Guarded(stage, "brokers", accessBroker="signed")
    configs = [
        BrokerConfig(release_4, "forced"),
        BrokerConfig(release_4, "asking", settings={"forceRegister": "false"}),
        BrokerConfig(release_5, "newer"),
    ]
    brokers = start_brokers(stage, [guarded], configs)
    eventually(lambda: all(refusals(broker) >= 3 for broker in brokers), 6 * ROUND_S)
    assert guarded.server.cluster().broker_addr_table == {}
    assert all(broker.process.runs for broker in brokers)
    guarded.change(accessBroker="open")
    for config in configs:
        guarded.server.await_brokers(config.name, 0, within_s=4 * ROUND_S)


@pytest.mark.conformance("AC-12")
def test_a_producer_whose_lookups_are_refused_goes_on_with_its_route(
    stage: Stage, release_5: Release
) -> None:
    guarded = Guarded(stage, "clients")
    start_brokers(stage, [guarded], [BrokerConfig(release_5, "broker-read")])
    guarded.server.await_brokers("broker-read", 0)  # some of 5.x register 10 s after their start only
    clients = Clients(stage, release_5, guarded, ["-Dlog.level=WARN"])
    run_command(stage, release_5, guarded.server, "updateTopic", "-c", "DefaultCluster", "-t", "Read")
    running = start_producer(clients, "Read")
    guarded.change(accessRead="signed")
    began = time.monotonic()
    newer = clients.start("Produce", "Read", 1, 1)
    refused = outcome(newer, Sent)
    assert refused.sent == 0
    assert "No route info of this topic" in refused.last_failure
    assert "access denied: read needs signed" in newer.printed()
    time.sleep(max(0, RUNNING_S - (time.monotonic() - began)))
    sent = end_producer(running)
    assert (sent.failures, sent.last_failure) == (0, "")
    assert sent.sent > RUNNING_S


@pytest.mark.conformance("AC-34")
@pytest.mark.parametrize("proxy", ["send-proxy-v2", "send-proxy"])
def test_a_client_of_a_trusted_proxy_is_not_one_of_this_machine(stage: Stage, proxy: Proxy) -> None:
    guarded = Guarded(stage, f"behind-{proxy}", accessProfile="guarded")
    balancer = Balancer(stage, [guarded.server], name=f"balancer-{proxy}", proxy=proxy)
    kv = {"namespace": "n", "key": "k", "value": "v"}
    assert Connection(guarded.server.port).ask(RequestCode.PUT_KV_CONFIG, kv).code == ResponseCode.SUCCESS
    client = Connection(balancer.port, source="127.0.0.7")
    refused = client.ask(RequestCode.PUT_KV_CONFIG, kv)
    assert refused.code == ResponseCode.NO_PERMISSION
    assert str(refused.remark).endswith(f"; caller wire:127.0.0.7:{client.local[1]}")
