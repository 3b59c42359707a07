"""What the tests run under gunicorn: the real worker with a service that needs no store."""

import asyncio
import atexit
import gc
import json
import logging
import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

import msgspec

from access.failures import Failures
from metrics.counts import Observed
from metrics.samples import Sample
from registry.options.catalogue import Options
from rocketmq_remoting.command import Command, encode
from worker.cache.cached_requests import CachedRequests, RepeatCheck
from worker.counters import Counters
from worker.meter import Metered
from worker.overload.known_hosts import KnownHosts
from worker.peer import Peer
from worker.server import RemotingWorker
from worker.serving import WorkerService
from worker.transport.frame_memory import FrameLimits, FrameMemory
from worker.transport.owner import Limits

ECHO, LATE, ABOUT, FAULT, PUSHES, HANG_UP, LONG = range(1, 8)
GO_AWAY = 1500

atexit.register(gc.freeze)  # as the server does: no last collection


class NoCache:
    """A service without cached requests and known brokers."""

    registered_peers = admin_peers = 0
    frame_memory: FrameMemory
    known_hosts = KnownHosts()

    @cached_property
    def counters(self) -> Counters:
        return Counters()

    @property
    def metered(self) -> Metered:
        return self

    def state(self) -> Iterable[Sample | Observed]:
        return ()

    def cached(self) -> CachedRequests | None:
        return None

    def cached_for(self, peer: Peer) -> CachedRequests | None:
        return None

    def check_repeat(self, due: RepeatCheck, peer: Peer) -> None:
        raise AssertionError("nothing is cached")


class EchoService(NoCache):
    """Answers with what it was sent; says what it saw of connections."""

    def __init__(self, options: Options, worker_id: str) -> None:
        self.options = options
        self.worker_id = worker_id
        self.failures = Failures()
        self.frame_memory = FrameMemory(
            asyncio.get_running_loop().time,
            msgspec.json.decode(os.environ.get("ECHO_FRAME_LIMITS", "{}"), type=FrameLimits),
        )
        self.peers: set[Peer] = set()
        self.ends: list[tuple[str, bool]] = []
        self.handled = 0
        self.draining = False
        self.stopped = False

    async def start(self) -> None:
        logging.getLogger(__name__).info("the service starts")
        await asyncio.sleep(float(os.environ.get("ECHO_START_S", 0)))
        if (refusals := Path(os.environ.get("ECHO_REFUSALS", "/none"))).exists():
            refusals.unlink()
            raise RuntimeError("not yet")

    def handle(self, command: Command, peer: Peer) -> None:
        self.handled += 1
        if self.draining and peer.go_away:
            self._answer(peer, command, GO_AWAY)
        elif command.code == ECHO:
            self._answer(peer, command, body=command.body)
        elif command.code == LATE:
            delay_s = int(command.get("ms") or 0) / 1000
            asyncio.get_running_loop().call_later(
                delay_s, lambda: self._answer(peer, command, body=command.body)
            )
        elif command.code == ABOUT:
            self._answer(peer, command, body=json.dumps(self._about(peer)).encode())
        elif command.code == FAULT:
            raise RuntimeError("a fault")
        elif command.code == PUSHES:
            self._push(peer, command, int(command.get("count") or 0), bytes(int(command.get("bytes") or 0)))
        elif command.code == LONG:
            self._answer(peer, command, body=bytes(int(command.get("bytes") or 0)))
        elif command.code == HANG_UP:
            self._answer(peer, command)
            peer.close("asked to")

    def when_rights_change(self, changed: Callable[[], None]) -> None:
        """As the real one; they never do."""

    def identified(self, peer: Peer) -> None:
        """As the real one; everything may be asked."""

    def comes_back(self, peer: Peer) -> None:
        """As the real one; no broker registers."""

    def connected(self, peer: Peer) -> None:
        self.peers.add(peer)

    def disconnected(self, peer: Peer, *, shutting_down: bool) -> None:
        self.peers.discard(peer)
        self.ends.append((peer.id, shutting_down))

    def end_announcing(self) -> None:
        logging.getLogger(__name__).info("the service announces no more")

    def begin_drain(self) -> None:
        self.draining = True

    async def stop(self) -> None:
        self.stopped = True
        if path := os.environ.get("ECHO_STOPPED"):
            with open(path, "a") as file:
                file.write(json.dumps({"ends": self.ends, "open": len(self.peers)}) + "\n")

    def _answer(self, peer: Peer, command: Command, code: int = 0, body: bytes = b"") -> None:
        if not command.is_oneway:
            peer.send(encode(command.reply(code, body=body)))

    def _push(self, peer: Peer, command: Command, count: int, body: bytes) -> None:
        """Answers in turns of the loop of their own, as if they had waited for a store."""
        if count:
            self._answer(peer, command, body=body)
            asyncio.get_running_loop().call_later(0.001, self._push, peer, command, count - 1, body)

    def _about(self, peer: Peer) -> dict[str, object]:
        return {
            "pid": os.getpid(),
            "id": peer.id,
            "address": peer.address,
            "host": peer.host,
            "worker": self.worker_id,
            "connections": len(self.peers),
            "fds": len(os.listdir("/proc/self/fd")),
        }


class EchoWorker(RemotingWorker):
    """The real worker; bounds that no option sets come from the environment."""

    def make_service(self, options: Options, worker_id: str) -> WorkerService:
        return EchoService(options, worker_id)

    def make_limits(self, options: Options) -> Limits:
        limits = super().make_limits(options)
        seconds = float(os.environ.get("ECHO_OPENING_S", limits.opening_s))
        return msgspec.structs.replace(limits, opening_s=seconds)


def app(environ: object, start_response: Callable[..., object]) -> Iterable[bytes]:
    """gunicorn wants an application; this worker never calls it."""
    return []
