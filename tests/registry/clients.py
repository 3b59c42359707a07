"""Clients of the race tests: each is a process of its own that asks without pause until its time is over."""

import multiprocessing as mp
import random
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TypeAlias

import msgspec

from registry.beats import beat
from registry.drivers import run
from registry.errors import BrokerBusy, RegistrationRefused, TopicNotFound
from registry.keys import Keys, member_key
from registry.plans import Act, Plan
from registry.registration import register
from registry.removal import expire, let_go, lose, unregister
from registry.rewrite import add_write_perm, wipe_write_perm
from registry.routes import RouteView, read_route, route_of
from registry.store import connect
from registry.topics import delete_topic
from tests.registry.brokers import address, registration

SMALL = tuple(f"T{number}" for number in range(20))
LARGE = tuple(f"T{number}" for number in range(1300))


class Report(msgspec.Struct, frozen=True):
    """What one client was told: event ids of acknowledged requests with their op, and what went wrong."""

    acknowledged: list[tuple[str, str]] = []
    complaints: list[str] = []
    requests: int = 0


class Caller:
    """Asks under the name of one worker; each request is an op of its own."""

    def __init__(self, url: str, name: str) -> None:
        self.store: Any = connect(url)
        self.keys = Keys()
        self.name = name
        self.random = random.Random(name)
        self.acknowledged: list[tuple[str, str]] = []
        self.complaints: list[str] = []
        self._numbers = count(1)
        self.requests = 0

    def ask(self, plan_of: Callable[[Act], Plan[Any]]) -> Any:
        """The answer; None when the broker was busy or the newcomer refused, as its sender would try again."""
        act = Act(op=f"{self.name}-{next(self._numbers):x}", actor=f"worker:{self.name}")
        self.requests += 1
        try:
            answer = run(plan_of(act), self.store)
        except (BrokerBusy, RegistrationRefused):
            return None
        event_id = answer if isinstance(answer, str) else getattr(answer, "event_id", "")
        if event_id:
            self.acknowledged.append((act.op, event_id))
        return answer

    def report(self) -> Report:
        return Report(self.acknowledged, self.complaints, self.requests)


Turn: TypeAlias = Callable[[Caller, int], None]  # one of a client's turns, and its number


def registers(name: str, topics: tuple[str, ...] = SMALL, number: int = 0, **rest: Any) -> Turn:
    """A new version each turn; all queue data carry it as readQueueNums."""

    def turn(caller: Caller, version: int) -> None:
        table = dict.fromkeys(topics, f"{version},8,6,0")
        said = registration(name, number, table, version=version, **rest)
        caller.ask(lambda act: register(caller.keys, said, act, owner=f"{caller.name}/1"))

    return turn


def comes_and_goes(name: str, topics: tuple[str, ...]) -> Turn:
    """Every registration is a first one."""
    come = registers(name, topics)

    def turn(caller: Caller, version: int) -> None:
        come(caller, version)
        caller.ask(lambda act: unregister(caller.keys, "c1", address(name), name, "0", act))

    return turn


def unregisters(name: str, number: int = 0) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        time.sleep(caller.random.random() * 0.01)
        at = address(name, number)
        caller.ask(lambda act: unregister(caller.keys, "c1", at, name, str(number), act))

    return turn


def beats(name: str, number: int = 0) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        caller.ask(lambda act: beat(caller.keys, "c1", address(name, number), act))

    return turn


def lapses_and_expires(name: str, number: int = 0) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        member = member_key("c1", address(name, number))
        caller.store.zadd(caller.keys.leases, {member: 1}, xx=True)
        time.sleep(caller.random.random() * 0.005)
        caller.ask(lambda act: expire(caller.keys, act))

    return turn


def loses(name: str, owner: str, number: int = 0) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        time.sleep(caller.random.random() * 0.01)
        orphan = run(let_go(caller.keys, "c1", address(name, number), owner), caller.store)
        if orphan is not None:
            caller.ask(lambda act: lose(caller.keys, orphan, "lost", act))

    return turn


def rewrites(name: str) -> Turn:
    def turn(caller: Caller, number: int) -> None:
        time.sleep(caller.random.random() * 0.01)
        rewrite = wipe_write_perm if number % 2 else add_write_perm
        caller.ask(lambda act: rewrite(caller.keys, name, act))

    return turn


def deletes(topic: str) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        time.sleep(caller.random.random() * 0.01)
        caller.ask(lambda act: delete_topic(caller.keys, topic, "", act))

    return turn


def reads(topics: Iterable[str], *, whole: bool) -> Turn:
    """Complains of torn routes: of tables that appear `whole`, no topic is older than one that was read before."""
    names = tuple(topics)
    seen: dict[str, int] = {}

    def turn(caller: Caller, _: int) -> None:
        for topic in names:
            try:
                route = route_of(run(read_route(caller.keys, topic), caller.store), RouteView())
            except TopicNotFound:
                continue
            with_members = {data.broker_name for data in route.broker_datas if data.broker_addrs}
            for queues in route.queue_datas:
                if queues.broker_name not in with_members:
                    caller.complaints.append(f"{topic}: {queues} without a living member")
                version = queues.read_queue_nums
                if whole and version < seen.get(queues.broker_name, 0):
                    caller.complaints.append(f"{topic}: version {version} after {seen}")
                seen[queues.broker_name] = max(seen.get(queues.broker_name, 0), version)

    return turn


def race(url: str, turns: dict[str, Turn], seconds: float) -> dict[str, Report]:
    """Let each client take its turns at once, in processes of their own; what they report."""
    context = mp.get_context("fork")
    results: Any = context.Queue()
    started = [
        context.Process(target=_client, args=(url, name, turn, seconds, results))
        for name, turn in turns.items()
    ]
    for process in started:
        process.start()
    reports = dict(results.get(timeout=seconds + 30) for _ in started)
    for process in started:
        process.join()
    return reports


def _client(url: str, name: str, turn: Turn, seconds: float, results: Any) -> None:
    caller = Caller(url, name)
    end = time.monotonic() + seconds
    try:
        for number in count(1):
            if time.monotonic() > end:
                break
            turn(caller, number)
    except BaseException as error:
        caller.complaints.append(f"{name}: {error!r}")
        raise
    finally:
        results.put((name, caller.report()))
