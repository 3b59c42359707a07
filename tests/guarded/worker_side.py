"""A worker on sockets of this process: its own connections, guard, caches and transport, over a real store.

What is not its own: where a peer is, which the accepted socket would say; TLS, of which only the names in a certificate
come; the clock."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from struct import pack, unpack_from
from time import gmtime, strftime
from typing import Any, Final, NamedTuple

from access.certificates import CertificateNames, names_in
from registry.options.catalogue import Options
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, SerializeType, decode, encode
from tests.guarded.world import Certificate, Connection, Outcome, WireRequest
from worker.assembly import Assembly
from worker.guard import ADMITTED, Verdict
from worker.peer import Peer
from worker.reply import Request
from worker.service import Service
from worker.transport.connection_balance import ConnectionBalance, ConnectionCounts
from worker.transport.connections import Connections, limits_of
from worker.transport.tls import ServerTls

PATIENCE_S: Final = 30
HANDSHAKE: Final = b"\x16"
DENIED: Final = re.compile(r"access denied: (\w+) needs [^;]+; caller (\S+)")
FENCE: Final = 9999
"""A request code that is none, and open to all."""
V2: Final = b"\r\n\r\n\0\r\nQUIT\n"


class PlainSession:
    """A TLS session without a cipher: its handshake is one line, the client's certificate."""

    def __init__(self) -> None:
        self.established = self.ended = False
        self._certificate: dict[str, Any] | None = None

    @property
    def certificate(self) -> CertificateNames | None:
        return names_in(self._certificate) if self._certificate else None

    def receive(self, data: bytes) -> bytes:
        if not self.established:
            line, _, data = data.removeprefix(HANDSHAKE).partition(b"\n")
            self._certificate, self.established = json.loads(line), True
        return data

    def encrypt(self, plain: bytes) -> bytes:
        return plain

    def outgoing(self) -> bytes:
        return b""

    def close_notify(self) -> bytes:
        return b""


class PlainTls(ServerTls):
    """Gives such sessions."""

    def session(self) -> Any:
        return PlainSession()


class Recording(Assembly):
    """Notes the actor of each request that a handler gets."""

    actor = ""

    def request(self, command: Command, peer: Peer, verdict: Verdict = ADMITTED) -> Request:
        request = super().request(command, peer, verdict)
        if command.code != FENCE:
            self.actor = request.origin.actor
        return request


class Seen(NamedTuple):
    """What came of a request that was sent some times: the replies, None of one that has none; how often it was counted
    as denied, and answered by its bytes; the actor where a handler got it."""

    replies: list[Command | None]
    denied: int
    by_bytes: int
    actor: str


class Line:
    """One connection to the worker."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._opaque = 0
        self._received = b""

    async def is_open(self) -> bool:
        """Return whether the worker answers here."""
        try:
            self.send(WireRequest(FENCE))
            return await self.receive() is not None
        except OSError:
            return False

    def send(self, request: WireRequest, times: int = 1) -> None:
        """Send a request so many times in one write, each with another opaque."""
        frames = [encode(self._command(request)) for _ in range(times)]
        self._client.sendall(b"".join(frames))

    async def receive(self) -> Command | None:
        """Return the next reply, None once the worker has closed."""
        loop = asyncio.get_running_loop()
        while len(self._received) < 4 or len(self._received) < 4 + unpack_from(">i", self._received)[0]:
            async with asyncio.timeout(PATIENCE_S):
                data = await loop.sock_recv(self._client, 1 << 16)
            if not data:
                return None
            self._received += data
        end = 4 + unpack_from(">i", self._received)[0]
        frame, self._received = self._received[4:end], self._received[end:]
        return decode(frame)

    def close(self) -> None:
        self._client.close()

    def _command(self, request: WireRequest) -> Command:
        self._opaque += 1
        kind = SerializeType.ROCKETMQ if request.binary else SerializeType.JSON
        flag = 2 if request.oneway else 0
        fields = dict(request.fields) or None
        return Command(request.code, self._opaque, flag, 399, 0, None, fields, request.body, kind)


class WorkerSide:
    """The worker, from `running`."""

    def __init__(self, service: Service, connections: Connections) -> None:
        assert isinstance(service.parts, Recording)
        self.parts = service.parts
        self._connections = connections
        self._listening = socket.create_server(("127.0.0.1", 0))

    def connect(self, peer: Connection) -> Line:
        """Connect as a peer at an address, with what it sends before its first frame."""
        client = socket.create_connection(self._listening.getsockname())
        accepted, _ = self._listening.accept()
        self._connections.admit(accepted, (peer.host, peer.port))
        client.sendall(_header(peer) + _handshake(peer))
        client.setblocking(False)
        return Line(client)

    async def ask(self, line: Line, request: WireRequest, times: int = 1) -> Seen:
        """Send a request so many times at once, and wait until each is answered."""
        denied, by_bytes, self.parts.actor = self._denied, self._by_bytes, ""
        line.send(request, times)
        if request.oneway:  # there is no answer to wait for, but that to the next request
            line.send(WireRequest(FENCE))
            reply = await line.receive()
            assert reply is not None
            assert reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            replies: list[Command | None] = [None] * times
        else:
            replies = [await line.receive() for _ in range(times)]
        return Seen(replies, self._denied - denied, self._by_bytes - by_bytes, self.parts.actor)

    def close(self) -> None:
        self._listening.close()

    @property
    def _denied(self) -> int:
        return int(self.parts.counters.security.of("authz", "denied").value)

    @property
    def _by_bytes(self) -> int:
        return self.parts.counters.cached_requests + self._connections.traffic.lookups


@asynccontextmanager
async def running(options: Options, worker_id: str) -> AsyncIterator[WorkerSide]:
    """Run a worker; it is stopped at the end."""
    service = Service(options, worker_id, Recording)
    balance = ConnectionBalance(ConnectionCounts())
    loop = asyncio.get_running_loop()
    connections = Connections(options, limits_of(options), service, PlainTls(options), loop, balance)
    worker = WorkerSide(service, connections)
    await service.start()
    try:
        yield worker
    finally:
        worker.close()
        connections.shutting_down = True
        connections.abort_all("the history is over")
        while len(connections):
            await asyncio.sleep(0.001)
        await service.stop()
        connections.close()


def outcome_of(
    reply: Command | None, request: WireRequest, actor: str, *, denied: bool, handled: bool
) -> Outcome:
    """Return what a request got, and the actor that its remark names, or else this one. `handled`: a handler had
    it."""
    if reply is None:
        return Outcome("silent" if request.oneway else "closed", actor, denied)
    if refused := DENIED.fullmatch(reply.remark or ""):
        assert reply.code == ResponseCode.NO_PERMISSION
        assert len(reply.remark or "") <= 200
        assert not reply.ext
        return Outcome(f"refused {refused[1]}", refused[2], denied)
    if denied and not handled and request.code == 322:
        assert (reply.code, reply.ext, reply.body) == (0, {"changed": "true"}, b"")
        return Outcome("changed", actor, denied)
    return Outcome("answered", actor, denied)


def _header(peer: Connection) -> bytes:
    """A PROXY header."""
    if not peer.header:
        return b""
    if peer.header == "local":
        return b"PROXY UNKNOWN\r\n" if peer.version == 1 else V2 + b"\x20\0\0\0"
    source = ip_address(peer.header)
    if peer.version == 1:
        return f"PROXY TCP{source.version} {source} {source} {peer.header_port} 9876\r\n".encode()
    addresses = source.packed * 2 + pack(">HH", peer.header_port, 9876)
    return (
        V2 + b"\x21" + (b"\x11" if source.version == 4 else b"\x21") + pack(">H", len(addresses)) + addresses
    )


def _handshake(peer: Connection) -> bytes:
    if not peer.tls:
        return b""
    shown = None if peer.certificate is None else _as_python_has_it(peer.certificate)
    return HANDSHAKE + json.dumps(shown).encode() + b"\n"


def _as_python_has_it(certificate: Certificate) -> dict[str, Any]:
    """As `SSLObject.getpeercert` returns a certificate."""
    names = [("URI", name) for name in certificate.uris] + [("DNS", name) for name in certificate.dns]
    return {
        "subject": [[("commonName", certificate.cn)]] if certificate.cn is not None else [],
        "subjectAltName": names,
        "notAfter": strftime("%b %d %H:%M:%S %Y GMT", gmtime(certificate.ends)),
    }
