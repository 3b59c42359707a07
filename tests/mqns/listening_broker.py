"""A broker's port on loopback that clients can speak to: it answers heartbeats, keeps them, and pushes."""

import asyncio
from types import TracebackType
from typing import Self

from mqns.name_server.calls import BrokerIdentity
from mqns.name_server.client import NameServerClient
from mqns.sync import EventLoopThread
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.heartbeat import HeartbeatData, decode_heartbeat
from rocketmq_remoting.registration import RegisterBrokerBody, encode_register_broker_body
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.version import CURRENT
from tests.mqns.cluster import broker_5


class ListeningBroker:
    """A broker of 5.5.0, but for everything that has to do with messages."""

    def __init__(self) -> None:
        self.received: list[Command] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = EventLoopThread()

    def __enter__(self) -> Self:
        self._server = self._loop.run(self._listen())
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._end())
        self._loop.close()

    @property
    def connections(self) -> int:
        return len(self._writers)

    @property
    def heartbeats(self) -> list[HeartbeatData]:
        """All that came, in order."""
        return [decode_heartbeat(c.body) for c in self.received if c.code == RequestCode.HEART_BEAT]

    @property
    def left(self) -> list[dict[str, str] | None]:
        """What groups said that left, in order."""
        return [c.ext for c in self.received if c.code == RequestCode.UNREGISTER_CLIENT]

    def register(self, name_server: str, name: str, **queues: int) -> None:
        """Register with a name server: topics with so many queues each."""
        topics = {topic: TopicConfig(topic, count, count) for topic, count in queues.items()}
        body = RegisterBrokerBody(DataVersion(0, 1000, 1), topics, topics.keys())
        encoded = encode_register_broker_body(body, version=CURRENT, compressed=False)
        with NameServerClient(name_server) as ns:
            ns.register_broker(
                BrokerIdentity("c1", name, self.address), encoded, ha_server_addr="127.0.0.1:1"
            )

    def push(self, command: Command) -> None:
        """Send every client a request."""

        async def write() -> None:
            for writer in self._writers:
                writer.write(encode(command))

        self._loop.run(write())

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            frames.feed(data)
            while (command := frames.next_command()) is not None:
                self.received.append(command)
                writer.write(encode(broker_5(command)))
        self._writers.discard(writer)
        writer.close()

    async def _end(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
