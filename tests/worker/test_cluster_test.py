"""ClusterTest mode: local routes first, then those of the product cluster's name servers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.frame import FrameReader
from tests.worker.scene import Broker, asynchronous, serving

PRODUCT_ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.99:1"},"brokerName":"product","cluster":"p",'
    b'"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"product","perm":6,'
    b'"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}'
)


@asynccontextmanager
async def name_server(answers: dict[str, bytes]) -> AsyncIterator[str]:
    """A product cluster's name server: topic -> body, code 17 for others, and silence for `silent`."""

    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        frames = FrameReader()
        while received := await reader.read(4096):
            frames.feed(received)
            while (request := frames.next_command()) is not None:
                writer.write(encode(_reply(request)))

    def _reply(request: Command) -> Command:
        body = answers.get(request.get("topic") or "")
        return request.reply(17, remark="no") if body is None else request.reply(0, body=body)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield "127.0.0.1:%d" % server.sockets[0].getsockname()[1]  # noqa: UP031
    finally:
        server.close()
        for writer in writers:
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize(
    ("topic", "version", "expected"),
    [
        pytest.param("TA", 513, {"broker-a"}, id="local"),
        pytest.param("TP", 513, {"product"}, id="product"),
        pytest.param("TP", 373, b"{0:", id="product-in-the-legacy-dialect"),
        pytest.param("TX", 513, 17, id="nowhere"),
        pytest.param("broken", 513, 17, id="product-answers-nonsense"),
    ],
)
@asynchronous
async def test_routes_come_from_here_then_from_the_product_cluster(
    store: EmbeddedStore, topic: str, version: int, expected: Any
) -> None:
    async with name_server({"TP": PRODUCT_ROUTE, "broken": b"no json"}) as address:
        options: dict[str, Any] = {
            "cluster_test": True,
            "namesrv_product_addr": f"127.0.0.1:1;nonsense; {address}",
        }
        async with serving(store.url, **options) as scene:
            await scene.register(Broker("broker-a"))
            for _ in range(2):
                answer = await scene.ask(105, topic=topic, version=version)
                if isinstance(expected, int):
                    assert answer.code == expected
                    assert (answer.remark or "").startswith(
                        "No topic route info in name server for the topic: " + topic
                    )
                elif isinstance(expected, bytes):
                    assert expected in answer.body
                else:
                    route = json.loads(answer.body)
                    assert {one["brokerName"] for one in route["brokerDatas"]} == expected


@asynchronous
async def test_local_routes_carry_the_order_topics_and_other_codes_are_as_usual(store: EmbeddedStore) -> None:
    async with serving(store.url, cluster_test=True) as scene:
        await scene.register(Broker("broker-a"))
        await scene.ask(100, namespace="ORDER_TOPIC_CONFIG", key="TA", value="broker-a:4")
        assert (await scene.route())["orderTopicConf"] == "broker-a:4"
        assert (await scene.ask(206)).body == b'{"topicList":["TA","TB"]}'
