"""gunicorn's side of a remoting worker: `gunicorn -k worker.server.RemotingWorker wsgi:app`.

Each worker runs one uvloop with its own service; nothing is shared between workers but the listening sockets,
how many connections each has, and the store, and nothing is started in the master, so preloading is safe."""

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
from typing import Any, Final

import uvloop
from gunicorn.workers.base import Worker
from msgspec.structs import replace

from access.awaited_file import await_access_file
from registry.options.catalogue import Options, computed
from registry.options.load import load
from worker.advertised import advertised_address
from worker.background import pause
from worker.logs import log_lines
from worker.service import Service
from worker.serving import STOP_S, Serving, WorkerService
from worker.transport import open_files
from worker.transport.allocator import keep_freed_memory
from worker.transport.connection_balance import ConnectionBalance, ConnectionCounts
from worker.transport.connections import limits_of
from worker.transport.owner import Limits

__all__ = ["RemotingWorker"]

log = logging.getLogger(__name__)

COLLECT_AFTER: Final = (20_000, 20, 100)
"""Python's thresholds of garbage collection: new containers, and how many collections make an older generation's."""
ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
"""Signals that end a worker. A new one gets them when it can act on them: gunicorn sends each once, and what its
handler takes between the fork and the worker's own is lost."""
AFTER_FAILURE_S: Final = 1.0
NOTIFY_EVERY_S: Final = 1.0
"""Pause before a worker that could not start lets gunicorn start the next."""


class RemotingWorker(Worker):  # type: ignore[misc]
    """A gunicorn worker that speaks RocketMQ remoting instead of HTTP."""

    _connection_counts: ConnectionCounts

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Called by gunicorn in the master."""
        super().__init__(*args, **kwargs)
        if not hasattr(RemotingWorker, "_connection_counts"):
            RemotingWorker._connection_counts = ConnectionCounts()
            os.register_at_fork(before=_block_signals, after_in_parent=_unblock_signals)

    def make_service(self, options: Options, worker_id: str) -> WorkerService:
        """Return what answers this worker's requests."""
        if options.traces:
            from traces.process import begin

            if (tracer := begin(options, "remoting")) is not None:
                from worker.traced_service import TracedService

                return TracedService(options, worker_id, tracer)
        return Service(options, worker_id)

    def make_limits(self, options: Options) -> Limits:
        """Return the bounds of this worker's connections."""
        return limits_of(options)

    def init_process(self) -> None:
        """Called by gunicorn in the new process."""
        options = load(os.environ)
        log_lines.through(self.log.error_log.handlers, options)
        await_access_file(options.access_file, self.notify)
        self.options = self._with_own_address(_that_fit(options))
        super().init_process()

    def _with_own_address(self, options: Options) -> Options:
        address = advertised_address(options, self.sockets[0].sock)
        if not address:
            log.info(
                "no address of this machine is announced; set advertiseAddress if clients ask /rocketmq/nsaddr"
            )
        return computed(options, {"advertise_address": address})

    def run(self) -> None:
        """Called by gunicorn: serve until the worker is stopped."""
        if self.alive:
            _collect_rarely()
            keep_freed_memory()
            uvloop.run(self._serve())

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        worker_id = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(3)}"
        service = self.make_service(self.options, worker_id)
        self._serving = Serving(
            self.options,
            self.make_limits(self.options),
            service,
            [listener.sock for listener in self.sockets],
            ConnectionBalance(self._connection_counts),
            drain_s=max(self.cfg.graceful_timeout - STOP_S - 0.5, self.cfg.graceful_timeout / 2),
        )
        running = loop.create_task(self._serving.run())

        def quit_now() -> None:
            self.alive = False
            self.cfg.worker_int(self)
            running.cancel()

        loop.add_signal_handler(signal.SIGTERM, self._end)
        loop.add_signal_handler(signal.SIGINT, quit_now)
        loop.add_signal_handler(signal.SIGQUIT, quit_now)
        loop.add_signal_handler(signal.SIGUSR1, self.log.reopen_files)
        _unblock_signals()
        notifying = loop.create_task(self._notify())
        try:
            await running
        except asyncio.CancelledError:
            log.info("the worker ends without a drain, as it was asked to")
        except Exception:
            log.exception("the worker could not serve; gunicorn starts another")
            await asyncio.sleep(AFTER_FAILURE_S)
            raise
        finally:
            notifying.cancel()

    def _end(self) -> None:
        self.alive = False
        self._serving.end()

    async def _notify(self) -> None:
        """Notify the master each second that the loop runs; end when there is no master."""
        while True:
            self.notify()
            if self.alive and self.ppid != os.getppid():
                log.warning("the gunicorn master is gone; this worker drains and ends")
                self._end()
            await pause(NOTIFY_EVERY_S)


def _block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def _collect_rarely() -> None:
    """Leave the objects of modules out of garbage collections, and have few: requests leave next to no cycles behind,
    and looking for them took a fifth of the time of small writes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def _that_fit(options: Options) -> Options:
    """The options with as many connections as the limit of open files allows; that is raised as far as it may be."""
    connections = open_files.fitting(options.max_connections)
    if connections < options.max_connections:
        log.log(
            _level(connections, options.max_connections),
            "maxConnections is %d and not %d: the limit of open files is %d, and some are kept for the store; "
            "raise the hard limit (LimitNOFILE of systemd, --ulimit nofile of a container) if that is too few",
            connections,
            options.max_connections,
            open_files.limit(),
        )
    return replace(options, max_connections=connections)


def _level(connections: int, wanted: int) -> int:
    """Return the level of the line that says so: few machines need all of the default."""
    by_default = wanted == Options().max_connections
    return logging.INFO if by_default and connections > wanted // 2 else logging.WARNING
