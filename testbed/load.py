"""A load of lookups and heartbeats on one event loop, by clients that reconnect as brokers and clients do."""

import asyncio
import contextlib
import itertools
import ssl
from collections import Counter

from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, SerializeType, encode
from rocketmq_remoting.frame import FrameReader

PAUSE_S = 0.05
ANSWER_S = 10.0  # far more than a client waits: on a busy machine it is this loop that is late
TRIES = 2


class Client:
    """One connection that is opened again, after 50 ms, when it was closed or the server sent GO_AWAY."""

    def __init__(self, port: int, *, tls: ssl.SSLContext | None = None, answer_s: float = ANSWER_S) -> None:
        self._port = port
        self._tls = tls
        self._answer_s = answer_s
        self._opaques = itertools.count()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.reconnects = 0

    async def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """Return the reply; raise ConnectionError after two closed connections, TimeoutError without a reply."""
        for number in range(TRIES):
            try:
                return await asyncio.wait_for(self._ask(code, ext, body), self._answer_s)
            except TimeoutError:
                self.close()
                raise
            except OSError as error:
                self.close()
                if number == TRIES - 1:
                    raise ConnectionError(f"closed again after {PAUSE_S} s: {error!r}") from error
                self.reconnects += 1
                await asyncio.sleep(PAUSE_S)
        raise AssertionError("unreachable")

    async def _ask(self, code: int, ext: dict[str, str], body: bytes) -> Command:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        reader, writer = self._streams
        opaque = next(self._opaques)
        writer.write(
            encode(
                Command(code, opaque, version=513, ext=ext, body=body, serialize_type=SerializeType.ROCKETMQ)
            )
        )
        frames = FrameReader()
        while (reply := frames.next_command()) is None:
            data = await reader.read(1 << 16)
            if not data:
                raise ConnectionResetError("closed by the server")
            frames.feed(data)
        assert reply.opaque == opaque
        if reply.code == ResponseCode.GO_AWAY:
            raise ConnectionResetError("GO_AWAY")
        return reply

    def close(self) -> None:
        if self._streams is not None:
            with contextlib.suppress(OSError):
                self._streams[1].close()
            self._streams = None


class Paced:
    """Sends the same request every `every_s` seconds and counts the replies."""

    def __init__(
        self, client: Client, code: int, ext: dict[str, str], *, every_s: float, start_s: float
    ) -> None:
        self.client = client
        self.answers: Counter[tuple[int, bytes]] = Counter()
        self.failures: list[str] = []
        self._request = (code, ext)
        self._every_s, self._start_s = every_s, start_s

    async def run(self, until: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._start_s
        while not until.is_set():
            await asyncio.sleep(max(due - loop.time(), 0))
            due = max(due + self._every_s, loop.time() - self._every_s)
            try:
                reply = await self.client.ask(*self._request)
            except (OSError, TimeoutError) as error:
                self.failures.append(repr(error))
            else:
                self.answers[reply.code, reply.body] += 1
        self.client.close()
