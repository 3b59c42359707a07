"""gunicorn's side of an HTTP worker: `gunicorn -k api.server.HttpWorker wsgi:app`.

gunicorn's threaded worker, except that a thread gets a request when all of it has come, and leaves its answer to the
worker's loop: peers that send or read slowly, or not at all, take memory and time up to their limits, and no thread."""

import logging
import os
import socket
import sys
import time
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from access.awaited_file import await_access_file
from api.access_records import write_pending
from api.counters import COUNTERS, publisher
from api.transport.connection import Connection
from api.transport.files import connections_within_files
from api.transport.handing_over import HandingOver
from api.transport.held_memory import HeldMemory
from api.transport.limits import Phase, limits_of, overdue
from api.transport.refusal import CONTINUE, Refusal
from api.transport.threads import RequestThreads
from api.transport.waiting import Waiting
from metrics.publisher import Publisher
from registry.options.catalogue import Options
from registry.options.load import load
from worker.logs import log_lines
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["ExporterWorker", "HttpWorker"]

log = RateLimitedLog(logging.getLogger(__name__))

READ_BYTES: Final = 1 << 16
ACCEPTED_AT_ONCE: Final = 64
OUT_OF_FILES_S: Final = 0.05
"""Pause of the loop when there is no file for a connection, and none waits that could be closed."""


class HttpWorker(ThreadWorker):  # type: ignore[misc]
    """A gunicorn worker whose threads wait for no peer."""

    def init_process(self) -> None:
        """Called by gunicorn in the new process."""
        options = load(os.environ)
        log_lines.through(self.log.error_log.handlers, options)
        await_access_file(options.access_file, self.notify)
        self._limits = limits_of(options)
        self._connections = connections_within_files(self._limits.connections, self._limits.watchers)
        self.worker_connections = sys.maxsize  # never stop to accept: each makes room for itself
        self._memory = HeldMemory(self._limits.held_bytes)
        self._handing_over = HandingOver(partial(self.method_queue.defer, self._take_back))
        self._publisher = self.make_publisher(options)
        super().init_process()

    def make_publisher(self, options: Options) -> Publisher | None:
        """Return what publishes what this process counts."""
        return publisher(options.namespace)

    def run(self) -> None:
        """Called by gunicorn: serve until the worker is stopped."""
        self._waiting = Waiting(self.poller, self._limits.seconds)
        super().run()
        write_pending()

    # What gunicorn's loop and threads call.

    def get_thread_pool(self) -> RequestThreads:
        """Called by gunicorn once."""
        return RequestThreads(self.cfg.threads)

    def accept(self, listener: Any) -> None:
        """Accept connections; of too many, each makes the one that has waited longest leave."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                peer, client = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("a connection cannot be accepted: %s; raise the limit of open files", error)
                if not self._make_room_for_one():
                    time.sleep(OUT_OF_FILES_S)
                return
            self._begin(Connection(self.cfg, peer, client, listener.getsockname(), self._limits))

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Let the loop turn once, no longer than to the next end of a wait."""
        super().wait_for_and_dispatch_events(self._waiting.pause_s(timeout))
        self._make_room_in_memory()
        if self._publisher is not None:
            self._publisher.publish_if_due()

    def murder_keepalived(self, force: bool = False) -> None:
        """Close the connections whose time is over, or all that wait."""
        if force:
            for connection in self._waiting.all():
                self._close(connection)
        for connection in self._waiting.overdue():
            self._end_wait(connection)

    def _cap_keepalive(self, deadline: float) -> None:
        self._waiting.shorten(Phase.IDLE, STOP_KEEPALIVE_LINGER)
        self._handing_over.stop()

    def handle(self, connection: Connection) -> bool:
        """Called in a thread: answer a whole request; return whether another one may follow."""
        keep = super().handle(connection)
        try:
            connection.write()
        except OSError:
            return False
        return bool(keep)

    def finish_request(self, connection: Connection, done: "Future[bool]") -> None:
        """Called by the loop when a thread is done with a connection."""
        connection.keep = not done.cancelled() and not done.exception() and done.result()
        if self._handing_over.hand_over(connection):
            self._memory.forget(connection)
            self.nr_conns -= 1
        else:
            self._write(connection)

    # A connection's way: begun, read until a request is whole, in a thread, written, read again or closed.

    def _begin(self, connection: Connection) -> None:
        self.nr_conns += 1
        if self.nr_conns > self._connections:
            COUNTERS.limited("httpMaxConnections")
            log.warning(
                "over %d connections, so some are closed; raise httpMaxConnections or ulimit -n, or see whose: %s",
                self._connections,
                connection.client,
            )
            if not self._make_room_for_one():
                self._close(connection)
                return
        self._waiting.enter(connection, Phase.IDLE, self._read)

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.peer.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
        elif connection.phase is not Phase.CLOSING:
            connection.parser.feed(data)
            self._advance(connection)

    def _advance(self, connection: Connection) -> None:
        """Give a request that is whole to a thread, or wait for the rest of it."""
        try:
            phase = connection.parser.advance()
        except Refusal as refusal:
            self._refuse(connection, refusal)
            return
        except Exception as error:
            self.handle_error(None, connection.sock, connection.client, error)
            self._write_last(connection)
            return
        self._memory.count(connection)
        if phase is Phase.WHOLE:
            self._waiting.leave(connection)
            self.enqueue_req(connection)
        elif connection.parser.take_expectation():
            connection.sock.sendall(CONTINUE)
            self._write(connection)
        else:
            self._waiting.enter(connection, phase, self._read)

    def _write(self, connection: Connection) -> None:
        try:
            written = connection.write()
            if written and not connection.keep:
                connection.peer.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        self._memory.count(connection)
        if not written:
            self._waiting.enter(connection, Phase.ANSWER, self._write)
        elif connection.keep:
            self._advance(connection)
        else:
            self._waiting.enter(connection, Phase.CLOSING, self._read)

    def _take_back(self, connection: Connection) -> None:
        self.nr_conns += 1
        self._write(connection)

    def _write_last(self, connection: Connection) -> None:
        connection.keep = False
        connection.parser.discard()
        self._write(connection)

    def _refuse(self, connection: Connection, refusal: Refusal) -> None:
        COUNTERS.refused(refusal.status, refusal.limit)
        log.warning(  # a text for each status, so that none hides another
            f"%s was refused a request ({refusal.status}): %s; nothing to do if it is hostile",
            connection.client,
            refusal,
        )
        connection.sock.sendall(refusal.encode())
        self._write_last(connection)

    def _close(self, connection: Connection) -> None:
        if not connection.closed:
            self._waiting.leave(connection)
            self._memory.forget(connection)
            self.nr_conns -= 1
            connection.close()

    # Limits.

    def _end_wait(self, connection: Connection) -> None:
        """Close a connection that has waited long enough; an error says so if a part of a request has come."""
        if connection.phase in (Phase.HEAD, Phase.BODY):
            self._refuse(connection, overdue(self._limits, connection.phase))
            return
        if connection.phase is Phase.ANSWER:
            self._memory.report_unread(connection, self._limits.seconds[Phase.ANSWER])
        self._close(connection)

    def _make_room_for_one(self) -> bool:
        connection = self._waiting.first()
        if connection is not None:
            self._close(connection)
        return connection is not None

    def _make_room_in_memory(self) -> None:
        while (connection := self._memory.too_large(self._waiting)) is not None:
            if (refusal := self._memory.refusal_of(connection)) is not None:
                self._refuse(connection, refusal)
            else:
                self._close(connection)


class ExporterWorker(HttpWorker):
    """The worker of the exporter (`api.exporter`): it counts nothing, others do."""

    def make_publisher(self, options: Options) -> None:
        """Return nothing: in the folder are the metrics of another process."""
