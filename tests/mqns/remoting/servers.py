"""Servers on real sockets, each in a thread of its own."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from mqns.sync import EventLoopThread
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextmanager
def served(serve: Serve, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of such a server, which runs in a thread of its own."""
    writers: list[asyncio.StreamWriter] = []

    async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)

    async def start() -> asyncio.Server:
        return await asyncio.start_server(noted, "127.0.0.1", 0, ssl=tls)

    async def stop() -> None:
        for writer in writers:
            if not writer.is_closing():  # Python 3.11.2 cannot abort a TLS transport that was closed twice
                writer.transport.abort()
        server.close()

    loop = EventLoopThread()
    server = loop.run(start())
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop.run(stop())
    loop.close()


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers all requests until the end."""
    frames = FrameReader()
    while data := await reader.read(1 << 16):
        frames.feed(data)
        while (request := frames.next_command()) is not None:
            if not request.is_oneway:
                writer.write(encode(request.reply(0, body=request.body)))
    writer.close()


async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads nothing and says nothing."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]
