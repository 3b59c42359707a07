"""The life of a remoting worker on its loop: start, serve, drain, stop."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from socket import socket
from typing import Final, Protocol

from registry.options.catalogue import Options
from worker.background import forever, pause
from worker.meter import Meter, Metered
from worker.peer import Peer
from worker.transport.accept import Acceptor
from worker.transport.connection_balance import ConnectionBalance
from worker.transport.connections import Connections
from worker.transport.owner import Limits, Service
from worker.transport.renewed_trust import RenewedTrust
from worker.transport.tls import ServerTls

__all__ = ["STOP_S", "Serving", "WorkerService"]

log = logging.getLogger(__name__)

ACCEPT_ON_S: Final = 1.5
"""For how long a worker that ends goes on accepting: a client may just have been sent here."""
UNDER_WAY_S: Final = 5.0
"""For how long requests under way are waited for at most, once no more are accepted."""
STOP_S: Final = 2.0
"""How long the end of connections and service may take, behind the drain."""
LOOK_S: Final = 0.1
TLS_FILES_S: Final = 0.5


class WorkerService(Service, Protocol):
    """`worker.service.Service`, as the transport needs it."""

    @property
    def metered(self) -> Metered: ...
    @property
    def comes_back(self) -> Callable[[Peer], None]: ...
    async def start(self) -> None: ...
    def end_announcing(self) -> None: ...
    def begin_drain(self) -> None: ...
    async def stop(self) -> None: ...


class Serving:
    """Serves one worker's part of the connections of `sockets`, and about as many as its siblings.

    `drain_s` bounds what lies between `end` and the last connection's end."""

    def __init__(
        self,
        options: Options,
        limits: Limits,
        service: WorkerService,
        sockets: Sequence[socket],
        balance: ConnectionBalance,
        *,
        drain_s: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._options = options
        self._service = service
        self._drain_s = drain_s
        self._tls = ServerTls(options)
        self._loop = loop
        self._connections = Connections(options, limits, service, self._tls, loop, balance)
        self._balance = balance
        self._acceptor = Acceptor(loop, sockets, self._connections.admit, balance)
        self._trust = RenewedTrust(self._connections.by_id.values, service.comes_back, loop.time)
        self._tls.when_trust_changes(self._trust.begin)
        self._meter = Meter(options.namespace, service.metered, self._connections, self._tls)
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Drain, then return from `run`."""
        self._ending.set()

    async def run(self) -> None:
        """Serve until `end`, or until cancelled, which leaves the drain out."""
        upkeep = [
            self._loop.create_task(self._every(self._connections.sweep_every_s, self._connections.sweep)),
            self._loop.create_task(self._every(TLS_FILES_S, self._tls.poll)),
            self._loop.create_task(self._every(TLS_FILES_S, self._trust.sweep)),
            self._loop.create_task(forever("the meter", self._meter.run)),
        ]
        try:
            if await self._started():
                self._acceptor.start()
                log.info("accepting connections")
                await self._ending.wait()
                await self._drain()
        finally:
            self._acceptor.stop()
            self._connections.shutting_down = True
            await self._stop()
            for task in upkeep:
                task.cancel()
            self._meter.publish()

    async def _started(self) -> bool:
        """Start the service; return whether it can answer, False when the end came first."""
        start = self._loop.create_task(self._service.start())
        ending = self._loop.create_task(self._ending.wait())
        try:
            await asyncio.wait((start, ending), return_when=asyncio.FIRST_COMPLETED)
            if start.done():
                await start  # raises what went wrong
            return start.done()
        finally:
            for task in (start, ending):
                task.cancel()
            await asyncio.wait((start, ending), timeout=STOP_S)

    async def _drain(self) -> None:
        """Go on answering for a while, close connections that have nothing under way, then wait for the rest.

        From here on the end of a connection says nothing about its broker, which may just have been sent GO_AWAY."""
        connections, began = self._connections, self._loop.time()
        gracefully = self._options.enable_shutdown_gracefully
        last = began + self._drain_s
        wanted_s = self._options.shutdown_wait_time_seconds if gracefully else 0
        serve_until = min(began + max(ACCEPT_ON_S, wanted_s), last)
        log.info("draining %d connections", len(connections))
        connections.shutting_down = True
        self._balance.defer_to_others()
        self._service.end_announcing()
        if gracefully:
            self._service.begin_drain()
        connections.begin_go_away()
        await asyncio.sleep(min(ACCEPT_ON_S, self._drain_s))
        self._acceptor.stop()
        connections.begin_go_away()
        at_first, since = len(connections), self._loop.time()
        while len(connections) and (now := self._loop.time()) < serve_until:
            left = (serve_until - now) / (serve_until - since)
            connections.close_quiet(int(at_first * left), "the worker ends")
            await asyncio.sleep(LOOK_S)
        last = min(last, self._loop.time() + UNDER_WAY_S)
        while connections.busy and self._loop.time() < last:
            connections.close_quiet(connections.busy, "the worker ends")
            await asyncio.sleep(LOOK_S)

    async def _stop(self) -> None:
        connections, last = self._connections, self._loop.time() + STOP_S
        connections.close_all("the worker ends")
        while len(connections) and self._loop.time() < last - STOP_S / 2:
            await asyncio.sleep(LOOK_S / 10)
        connections.abort_all("the worker ends")
        try:
            await asyncio.wait_for(self._service.stop(), max(0.1, last - self._loop.time()))
        except TimeoutError:
            log.warning(
                "the service did not stop in %g s, the store may be slow; the worker ends all the same",
                STOP_S,
            )
        except Exception:
            log.exception(
                "the service stopped with a fault of this server; the worker ends all the same, report it"
            )
        connections.close()

    async def _every(self, every_s: float, do: Callable[[], None]) -> None:
        while True:
            await pause(every_s)
            try:
                do()
            except Exception:
                log.exception("a periodic task failed by a fault of this server; it runs again, report it")
