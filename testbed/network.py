"""A network in memory for clients on a virtual clock: peers that answer, hang, refuse, garble and vanish.

Nothing takes time, except the delays of a peer."""

import asyncio
import inspect
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.frame import FrameReader

HIGH_WATER = 64 * 1024
"""Bytes in a write buffer from which on `pause_writing` is called, as asyncio does."""

Reply: TypeAlias = Command | bytes | None
Answer: TypeAlias = Callable[[Command], Reply | Awaitable[Reply]]
"""A peer's reply to a request: a command (not sent for a oneway request), raw bytes, or nothing."""


def succeed(request: Command) -> Command:
    """Return an empty reply of success."""
    return request.reply(0)


class Frame(msgspec.Struct, frozen=True):
    """A received request: time (seconds of the loop's clock), peer, number of the peer's connection (from 1)."""

    at: float
    address: str
    connection: int
    command: Command


class Peer:
    """One address. Its attributes may be changed at any time.

    `connect_s` is how long a connect takes; None never ends. `refuses` connects, or does not. While `reads` is
    false it takes no bytes."""

    def __init__(self, network: "Network", address: str, answer: Answer) -> None:
        self._network = network
        self.address = address
        self.answer = answer
        self.connect_s: float | None = 0.0
        self.refuses = False
        self.reads = True
        self.connects = 0
        self.connections: list[Transport] = []
        """Open connections, oldest first."""

    @property
    def frames(self) -> list[Frame]:
        """Return all frames that came here, in order."""
        return [frame for frame in self._network.frames if frame.address == self.address]

    @property
    def codes(self) -> list[int]:
        """Return the request codes that came here, in order."""
        return [frame.command.code for frame in self.frames]

    def push(self, data: Command | bytes) -> None:
        """Send this over every open connection."""
        for connection in self.connections:
            connection.to_client(data)

    def cut(self, error: Exception | None = None) -> None:
        """End every open connection: in order, or with an error such as ConnectionResetError."""
        for connection in list(self.connections):
            connection.end(error)

    def vanish(self) -> None:
        """Cut all connections, and refuse new ones."""
        self.refuses = True
        self.cut(ConnectionResetError(104, "Connection reset by peer"))

    def take(self) -> None:
        """Read again, first what was held back."""
        self.reads = True
        for connection in self.connections:
            connection.flush()


class Network:
    """Peers by address; connects to any other address are refused."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.peers: dict[str, Peer] = {}

    def serve(self, address: str, answer: Answer = succeed) -> Peer:
        """Add a peer at an address, and return it."""
        peer = Peer(self, address, answer)
        self.peers[address] = peer
        return peer

    @property
    def open_connections(self) -> int:
        return sum(len(peer.connections) for peer in self.peers.values())

    async def connect(
        self, host: str, port: int, protocol_factory: Callable[[], Any], tls: ssl.SSLContext | None
    ) -> tuple[Any, Any]:
        """A mqns.remoting.connection_table.Connect."""
        peer = self.peers.get(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        if peer is None:
            raise ConnectionRefusedError(111, "Connection refused")
        peer.connects += 1
        if peer.connect_s is None:
            await asyncio.Event().wait()
        await asyncio.sleep(peer.connect_s or 0)
        if peer.refuses:
            raise ConnectionRefusedError(111, "Connection refused")
        protocol = protocol_factory()
        transport = Transport(self, peer, peer.connects, protocol)
        peer.connections.append(transport)
        protocol.connection_made(transport)
        return transport, protocol


class Transport(asyncio.Transport):
    """A connection: the client's end, and what the peer does with it."""

    def __init__(self, network: Network, peer: Peer, number: int, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": peer.address})
        self._loop = asyncio.get_running_loop()
        self._network = network
        self._peer = peer
        self._number = number
        self._protocol = protocol
        self._reader = FrameReader()
        self._held = bytearray()
        self._paused = False
        self._closing = False
        self._over = False
        self._answers: set[asyncio.Future[Reply]] = set()

    # asyncio.Transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing:
            return
        self._held += data
        if self._peer.reads:
            self._loop.call_soon(self.flush)
        if len(self._held) > HIGH_WATER and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._held:
            self._loop.call_soon(self.end, None)

    def abort(self) -> None:
        self._closing = True
        self._held.clear()
        self._loop.call_soon(self.end, None)

    def get_write_buffer_size(self) -> int:
        return len(self._held)

    # the peer's end

    def flush(self) -> None:
        """Deliver the written bytes to the peer."""
        if self._over or not self._peer.reads:
            return
        self._reader.feed(bytes(self._held))
        self._held.clear()
        if self._paused:
            self._paused = False
            self._protocol.resume_writing()
        while (command := self._reader.next_command()) is not None:
            self._network.frames.append(Frame(self._loop.time(), self._peer.address, self._number, command))
            if not command.is_response:
                self._answer(command)
        if self._closing:
            self._loop.call_soon(self.end, None)

    def to_client(self, data: Command | bytes) -> None:
        """Send a command or bytes to the client."""
        self._loop.call_soon(self._deliver, encode(data) if isinstance(data, Command) else data)

    def end(self, error: Exception | None) -> None:
        """End the connection."""
        if self._over:
            return
        self._over = self._closing = True
        self._peer.connections.remove(self)
        for task in self._answers:
            task.cancel()
        self._loop.call_soon(self._protocol.connection_lost, error)

    def _deliver(self, data: bytes) -> None:
        if not self._closing:
            self._protocol.data_received(data)

    def _answer(self, command: Command) -> None:
        reply = self._peer.answer(command)
        if not inspect.isawaitable(reply):
            self._reply(command, reply)
            return
        task = asyncio.ensure_future(reply)
        self._answers.add(task)
        task.add_done_callback(lambda done: self._answered(command, done))

    def _answered(self, command: Command, answer: asyncio.Future[Reply]) -> None:
        self._answers.discard(answer)
        if not answer.cancelled():
            self._reply(command, answer.result())

    def _reply(self, command: Command, reply: Reply) -> None:
        if isinstance(reply, bytes) or (reply is not None and not command.is_oneway):
            self.to_client(reply)
