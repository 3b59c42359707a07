"""One random history: requests to a worker and to an HTTP process of the same store, whose principals change meanwhile,
each compared with what the model says of it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar
from urllib.parse import quote

import pytest
import redis as redis_py

from access.failures import Failures
from registry.drivers import run
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from tests.guarded.changes import Changes
from tests.guarded.clock import Clock
from tests.guarded.http_side import HttpSide
from tests.guarded.model import HttpModel, WireModel
from tests.guarded.requests import Requests
from tests.guarded.worker_side import Line, outcome_of, running
from tests.guarded.world import Connection, HttpRequest, Outcome, WireRequest, World
from tests.guarded.worlds import Worlds
from tests.worker.scene import reached
from worker.guard import Guard

T = TypeVar("T")
BY_HAND: Final = Origin("op", "test")
LINES: Final = 5
ACTED: Final = frozenset((103, 104, 322, 901, 904, 100, 102, 205, 216, 217, 327, 318))
"""Codes whose actor events have, or owners."""


class History:
    """`seen` counts what came of its requests."""

    def __init__(self, seed: str, store_url: str, redis: redis_py.Redis, folder: Path) -> None:
        self._dice = Random(seed)
        self._redis = redis
        self._clock = Clock()
        self._worlds = Worlds(self._dice)
        self.world = self._worlds.world(self._clock.now)
        self._wire_model = WireModel(self.world)
        self._http_model = HttpModel(self.world)
        self._requests = Requests(self._dice, self.world)
        self._keys = Keys(folder.name)
        self._changes = Changes(
            self._dice, self.world, self._worlds, folder, partial(run, store=redis), self._keys
        )
        self._lines: list[tuple[Connection, Line]] = []
        self._numbers = 0
        self.seen = Counter[str]()
        self._options = _options(
            self.world, store_url, folder.name, self._changes.file.path, self._dice.random() < 0.5
        )

    async def play(self, requests: int) -> None:
        """Make so many requests. Raises AssertionError where an outcome is not that of the model."""
        with pytest.MonkeyPatch.context() as patch:
            self._have_the_clock(patch)
            self._changes.register(self._numbers + 1)
            self._http = HttpSide(self._options, self._redis)
            async with running(self._options, "w1") as self._worker:
                await self._clock.until_asleep()
                while self.seen["requests"] < requests:
                    (step,) = self._dice.choices([*STEPS], [*STEPS.values()])
                    await step(self)
                for _, line in self._lines:
                    line.close()

    # -- requests

    async def ask_worker(self) -> None:
        """Send a request over a connection, mostly again and again, so that its bytes answer it."""
        if not self._lines:
            return await self.connect()
        peer, line = self._dice.choice(self._lines)
        request = self._requests.on_wire()
        self.seen["requests"] += 1
        if self._wire_model.is_last(peer, request):
            await self._compare_on_wire(peer, line, request._replace(oneway=False), 1)
            assert not await line.is_open(), f"{peer} is open after {request}"
            self._lines.remove((peer, line))
            self.seen["closed"] += 1
            return None
        result = await self._compare_on_wire(peer, line, request, 1)
        if self._wire_model.is_last(peer, request):
            return None
        if result == "answered" and self._dice.random() < 0.8:
            for times in (1, 3):
                await self._compare_on_wire(peer, line, request, times)
        elif self._dice.random() < 0.3:
            await self._compare_on_wire(peer, line, request, 1)
        return None

    async def _compare_on_wire(self, peer: Connection, line: Line, request: WireRequest, times: int) -> str:
        expected, *_ = [self._wire_model.judge(peer, request) for _ in range(times)]
        seen = await self._worker.ask(line, request, times)
        context = f"{peer}\n{request}"
        assert seen.denied == times * expected.denied, (
            f"{context}\ndenied {seen.denied} times, expected {expected}"
        )
        for reply in seen.replies:
            actor = seen.actor if request.code in ACTED else ""
            outcome = outcome_of(reply, request, actor, denied=expected.denied, handled=bool(seen.actor))
            self._agree(outcome, expected, context)
        self.seen["frames"] += times
        self.seen["by bytes"] += seen.by_bytes
        self.seen[f"wire: {expected.result.split()[0]}"] += times
        return expected.result

    async def ask_http(self) -> None:
        """Send a request over HTTP."""
        self._compare_over_http(self._requests.over_http())

    def _compare_over_http(self, request: HttpRequest) -> Any:
        shown = request.path == "/v1/whoami" and self._http_model.classes(request)
        expected = self._http_model.judge(request)
        seen = self._http.ask(request)
        self._agree(seen.outcome, expected, str(request))
        if shown is not False and expected.result == "answered":
            assert set(seen.json["classes"]) == shown, request
        self.seen["requests"] += 1
        self.seen["over HTTP"] += 1
        self.seen[f"HTTP: {expected.result.split()[0]}"] += 1
        return seen.json

    def _agree(self, outcome: Outcome, expected: Outcome, context: str) -> None:
        if not outcome.actor or not expected.actor:
            outcome = outcome._replace(actor=expected.actor)
        assert outcome == expected, f"{outcome}, but {expected} in the model\nof {context}\nin {self.world}"

    # -- changes

    async def connect(self) -> None:
        """Connect from somewhere, and leave the oldest of some connections."""
        self._numbers += 1
        peer = self._worlds.connection(self._numbers, self._clock.now)
        line = self._worker.connect(peer)
        is_open, accepts = await line.is_open(), self._wire_model.accepts(peer)
        assert is_open == accepts, f"{peer}: {'not ' * (not is_open)}open"
        if is_open:
            self._lines.append((peer, line))
        for _, oldest in self._lines[:-LINES]:
            oldest.close()
        self._lines = self._lines[-LINES:]
        self._changes.register(self._numbers + 1)

    async def move_clock(self) -> None:
        """Let time go on, often just beyond the end of something."""
        of_peers = [peer.certificate.ends for peer, _ in self._lines if peer.certificate is not None]
        ends = [end for end in (*self._changes.ends(), *of_peers) if end > self._clock.now]
        if ends and self._dice.random() < 0.5:
            await self._move(min(ends) - self._clock.now + 0.01)
        else:
            await self._move(self._dice.choice((0.3, 1.1, 2.5, 7.0, 70.0)))

    async def change_file(self) -> None:
        """Have other principals."""
        self._changes.change_file()
        await self._look_at_file()

    async def spoil_file(self) -> None:
        """Leave a file that is none: what was in force stays."""
        self._changes.file.spoil()
        await self._look_at_file()

    async def store_token(self) -> None:
        """Store a token, as another HTTP process would."""
        self._changes.store_token()
        await self._follow()
        await self._move(1.0)

    async def revoke(self) -> None:
        """Revoke or restore a credential or a principal, here or in another HTTP process."""
        credential, restores = self._changes.some_credential(), self._dice.random() < 0.4
        if self._dice.random() < 0.5:
            self._changes.revoke(credential, restores)
            await self._follow()
            await self._move(1.0)
        elif "eventId" in (self._compare_over_http(self._revocation(credential, restores)) or ()):
            self._changes.note_revoked(credential, restores)
            await self._follow()
        else:
            return
        self.seen["restored" if restores else "revoked"] += 1

    def _revocation(self, credential: str, restores: bool) -> HttpRequest:
        """Return the request, from some caller."""
        request = self._requests.over_http()._replace(needs="config", names={})
        path = "/v1/access/revocations"
        if restores:
            return request._replace(method="DELETE", path=f"{path}/{quote(credential, safe='')}", body=None)
        return request._replace(method="POST", path=path, body={"credential": credential})

    # -- around

    async def _look_at_file(self) -> None:
        """Let the time pass in which both look at it."""
        await self._move(2.0)
        self._http.look_at_file()

    async def _move(self, seconds: float) -> None:
        await self._clock.move(seconds)
        self.world.now = self._clock.now

    async def _follow(self) -> None:
        """Wait until the worker has followed all that is in the store."""
        last: Any = self._redis.xrevrange(self._keys.events, count=1)
        assert not last or await reached(self._worker.parts.follower, last[0][0])

    def _have_the_clock(self, patch: pytest.MonkeyPatch) -> None:
        """Have this history's clock where the time of day decides, and times between bad proofs. That the worker stands
        still while this process does all else is not its fault."""
        patch.setattr("worker.watch.standstill.LONGEST_S", inf)
        read = self._clock.read
        patch.setattr("worker.assembly.Guard", partial(Guard, clock=read, sleep=self._clock.sleep))
        for failures in ("worker.guard.Failures", "api.gate.Failures"):
            patch.setattr(failures, partial(Failures, read))
        for clock in ("time", "monotonic"):
            patch.setattr(f"api.tokens.{clock}", read)


STEPS: Final[Mapping[Callable[[History], Awaitable[None]], float]] = {
    History.ask_worker: 55,
    History.ask_http: 30,
    History.connect: 6,
    History.move_clock: 4,
    History.change_file: 1,
    History.spoil_file: 0.3,
    History.store_token: 1.5,
    History.revoke: 3,
}
"""How often each."""


def _options(world: World, store_url: str, namespace: str, file: Path, compiled: bool) -> Options:
    rules: dict[str, Any] = {f"access_{of_class}": rule for of_class, rule in world.rules.items()}
    return Options(
        redis_url=store_url,
        namespace=namespace,
        epoll_transport=compiled,
        access_file=str(file),
        access_mode="observe" if world.observes else "enforce",
        access_networks=",".join(world.networks),
        proxy_trusted_cidrs=",".join(world.proxies),
        proxy_required=world.proxy_required,
        http_trusted_proxies=",".join(world.http_proxies),
        ownership_guard=False,
        **rules,
    )
