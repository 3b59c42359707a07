"""The sync client, over real sockets: the real mqnamesrv and a broker's port."""

import doctest
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqns.errors import ConnectionClosed, ResponseError
from mqns.heartbeats.groups import ConsumerGroup
from mqns.mq_client import MqClientOptions
from mqns.routes.queues import MessageQueue
from mqns.routes.subscribe import FindBrokerResult
from mqns.routes.table import CachedRoute
from mqns.sync_mq_client import MqClient
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command
from rocketmq_remoting.version import CURRENT
from testbed.eventually import eventually
from testbed.nameserver import ONE_WORKER, NameServer
from tests.mqns.listening_broker import ListeningBroker

DOCUMENT = Path(__file__).parents[2] / "docs" / "mq-client.md"
OPTIONS = MqClientOptions(client_ip="10.0.0.5", instance_name="one", poll_name_server_s=0.05)
ID = "10.0.0.5@one"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = NameServer(tmp_path_factory.mktemp("server"), ONE_WORKER).start()
    yield f"127.0.0.1:{server.port}"
    server.stop()


@pytest.fixture
def broker(server: str) -> Iterator[ListeningBroker]:
    with ListeningBroker() as broker:
        broker.register(server, "broker-a", TopicTest=4, Orders=4)
        yield broker


def test_every_method(server: str, broker: ListeningBroker) -> None:
    reported: list[tuple[str, int]] = []
    changed: list[str] = []

    def tell(topic: str, cached_route: CachedRoute) -> None:
        reported.append((topic, len(cached_route.subscribe)))

    with MqClient(server, OPTIONS) as client:
        assert client.client_id == ID
        end = client.watch("Orders", tell)
        assert reported == [("Orders", 4)]
        end()
        assert list(client.publish_info("TopicTest").queues) == [
            MessageQueue("TopicTest", "broker-a", number) for number in range(4)
        ]
        assert len(client.subscribe_queues("Orders")) == 4
        assert client.broker_of(client.subscribe_queues("Orders")[0]) == "broker-a"
        assert client.master_address("broker-a") == broker.address
        assert client.find_broker("broker-a", 1) == FindBrokerResult(broker.address, is_slave=False)
        assert client.find_broker("broker-a", 1, only_this=True) is None
        assert client.cached_route("unknown") is None
        with pytest.raises(ResponseError):
            client.publish_info("unknown")

        client.on_consumers_changed(changed.append)
        client.add_producer("pg", ["Orders"])
        client.add_consumer(ConsumerGroup(group="cg", subscriptions={"Orders": "paid"}))
        client.subscribe("cg", "TopicTest")
        client.unsubscribe("cg", "TopicTest")
        seen = [
            (
                [c.group_name for c in heartbeat.consumer_data_set],
                [p.group_name for p in heartbeat.producer_data_set],
            )
            for heartbeat in broker.heartbeats
        ]
        assert (([], ["pg"]) in seen, (["cg"], ["pg"]) in seen) == (True, True)
        assert client.broker_version(broker.address) == CURRENT
        broker.push(
            Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, 1, 2, CURRENT, ext={"consumerGroup": "cg"})
        )
        assert eventually(lambda: changed) == ["cg"]
        client.remove_producer("pg")
        client.remove_consumer("cg")
        assert broker.left == [
            {"producerGroup": "pg", "clientID": ID},
            {"clientID": ID, "consumerGroup": "cg"},
        ]
    eventually(lambda: broker.connections == 0)


def test_closing_unregisters_and_leaves_nothing(server: str, broker: ListeningBroker) -> None:
    client = MqClient(server, OPTIONS)
    client.add_producer("pg", ["Orders"])
    client.close()
    client.close()
    assert broker.left == [{"producerGroup": "pg", "clientID": ID}]
    eventually(lambda: broker.connections == 0)
    with pytest.raises(ConnectionClosed):
        client.add_producer("other")


def test_a_client_that_cannot_begin_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        MqClient(fetch_name_servers=fail)
    assert threading.active_count() == before


def test_the_document_shows_what_happens(server: str, broker: ListeningBroker) -> None:
    text = DOCUMENT.read_text().replace("127.0.0.1:9876", server).replace("127.0.0.1:10911", broker.address)
    examples = doctest.DocTestParser().get_doctest(
        text.replace("```", ""), {}, "mq-client.md", str(DOCUMENT), 0
    )
    assert len(examples.examples) > 10
    said: list[str] = []
    runner = doctest.DocTestRunner()
    runner.run(examples, out=said.append)
    assert (runner.failures, "".join(said)) == (0, "")
    assert broker.heartbeats[-1].client_id == "10.0.0.5@billing"
    assert len(broker.left) == 2
