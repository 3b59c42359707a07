"""That a stage with access enforced is one: its peers are known by what they prove, and others are refused.

Tests of other modules that are marked `twice` run there a second time (docs/interop.md)."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mqnamesrv.store import opened
from registry.keys import Keys
from registry.store.connect import connect
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.broker import A
from testbed.connection import Closed, Connection
from testbed.eventually import eventually, stays
from testbed.rocketmq.admin import run_command
from testbed.rocketmq.brokers import Broker, BrokerConfig, start_brokers
from testbed.rocketmq.clients import Clients
from testbed.rocketmq.releases import Release
from testbed.rocketmq.servers import NameServer
from testbed.rocketmq.stage import Stage

REFUSED_ROUNDS = 2
ROUND_S = 10.0
"""Between two registrations of a broker here; with TLS the first one is that long after its start, too."""
KV = {"namespace": "n", "key": "k", "value": "v"}


@pytest.fixture
def elsewhere(enforced_stage: Stage, tmp_path: Path) -> Iterator[Stage]:
    """A place for brokers of the same names."""
    with Stage(tmp_path, enforced_stage.access) as stage:
        yield stage


def actors(stage: Stage, kind: str) -> set[str]:
    """Return the actors of all events of a kind."""
    with opened("", stage.folder / "ours-server" / "data") as url, connect(url, "default") as store:
        entries: Any = store.xrange(Keys("default").events)
    return {event["actor"] for _, event in entries if event["kind"] == kind}


def test_peers_are_known_by_what_they_prove(
    enforced_stage: Stage, enforced_server: NameServer, release_5: Release
) -> None:
    start_brokers(enforced_stage, [enforced_server], [BrokerConfig(release_5, "proved")])
    enforced_server.await_brokers("proved", 0)
    run_command(enforced_stage, release_5, enforced_server, "updateKvConfig", "-s", "n", "-k", "k", "-v", "v")
    topic = "-c", "DefaultCluster", "-t", "Proved"
    run_command(enforced_stage, release_5, enforced_server, "updateTopic", *topic)
    assert Clients(enforced_stage, release_5, enforced_server).produce("Proved", 1).sent == 1
    assert actors(enforced_stage, "broker_registered") == {"mtls:brokers"}
    assert actors(enforced_stage, "kv_changed") == {"acl:admins"}


def test_peers_that_prove_nothing_are_refused(enforced_stage: Stage, enforced_server: NameServer) -> None:
    lookup = RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TBW102"}
    with closing(Connection(enforced_server.port, tls=enforced_stage.access.stranger)) as stranger:
        refused = A.register(stranger), stranger.ask(RequestCode.PUT_KV_CONFIG, KV), stranger.ask(*lookup)
    assert {reply.code for reply in refused} == {ResponseCode.NO_PERMISSION}
    with closing(Connection(enforced_server.port, tls=enforced_stage.access.observer)) as observer:
        assert A.register(observer).code == ResponseCode.NO_PERMISSION
        assert observer.ask(RequestCode.PUT_KV_CONFIG, KV).code == ResponseCode.NO_PERMISSION
        assert observer.ask(*lookup).code != ResponseCode.NO_PERMISSION
    with closing(Connection(enforced_server.port)) as plain, pytest.raises(Closed):
        plain.ask(*lookup)


def test_a_new_master_on_another_host_takes_the_place_of_one_that_hangs_if_they_are_one_principal(
    enforced_stage: Stage, elsewhere: Stage, enforced_server: NameServer, release_5: Release
) -> None:
    """As when a controller has elected it: the former master's connection is open, and its port accepts."""
    config = BrokerConfig(release_5, "elected", cluster="elected")
    (former,) = start_brokers(enforced_stage, [enforced_server], [config])
    enforced_server.await_brokers("elected", 0)
    former.freeze()
    (elected,) = start_brokers(elsewhere, [enforced_server], [config])
    eventually(lambda: enforced_server.brokers("elected") == {0: elected.address}, 3 * ROUND_S)


def test_of_another_principal_it_waits_until_the_former_master_is_gone(
    enforced_stage: Stage, elsewhere: Stage, enforced_server: NameServer, release_5: Release
) -> None:
    config = BrokerConfig(release_5, "contested", cluster="contested")
    (former,) = start_brokers(enforced_stage, [enforced_server], [config])
    enforced_server.await_brokers("contested", 0)
    former.freeze()
    other = Broker(elsewhere, config, [enforced_server], enforced_stage.access.other_broker).await_boot()
    eventually(lambda: _refusals(other) >= REFUSED_ROUNDS, (REFUSED_ROUNDS + 2) * ROUND_S)
    assert enforced_server.brokers("contested") == {0: former.address}
    former.process.kill()
    eventually(lambda: enforced_server.brokers("contested") == {0: other.address}, 3 * ROUND_S)
    stays(lambda: enforced_server.brokers("contested") == {0: other.address}, 1)


def _refusals(broker: Broker) -> int:
    return broker.process.printed().count("access denied: broker needs the owner of contested")
