"""Clients of the races, each a process of its own that asks its worker's share of operations without pause."""

import multiprocessing as mp
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count, takewhile
from typing import Any, TypeAlias

import msgspec

from registry.beats import beat
from registry.clusters import cluster_info
from registry.drivers import run
from registry.errors import BrokerBusy, TopicNotFound
from registry.keys import Keys
from registry.plans import Act, Plan, ScriptCall
from registry.registration import register
from registry.removal import expire, let_go, lose, settle_owed, unregister
from registry.rewrite import add_write_perm, wipe_write_perm
from registry.rounds import ask, carry_on
from registry.routes import RoutesRead, RouteView, route_of, routes_call
from registry.scripts import script
from registry.store import connect
from registry.topics import delete_topic, register_topic
from remoting.route import QueueData, TopicRouteData
from tests.races.asked import (
    SMALL,
    TABLES,
    Answered,
    Asked,
    Deleting,
    Leaving,
    Note,
    Outcome,
    Registering,
    Rewriting,
    Seen,
    Sent,
    Setting,
    Table,
    Upkeep,
)
from tests.races.history import Position, Route, position
from tests.registry.brokers import address, registration

CLUSTER = "c1"
FINISH_S = 120
SLOW_S = 0.005
STEPS = 8  # of a first registration of three slices, and one more


class Report(msgspec.Struct, frozen=True):
    """What one client did and saw; `error` is what ended it early.

    `answered` are the lookups of one topic over one connection, `sent` the registrations acknowledged over the wire."""

    notes: list[Note] = []
    seen: list[Seen] = []
    answered: list[list[Answered]] = []
    sent: list[Sent] = []
    error: str = ""


class Caller:
    """Asks under the name of one worker; each request is an op of its own."""

    def __init__(self, url: str, keys: Keys, name: str, seed: int) -> None:
        self.url = url
        self.store: Any = connect(url)
        self.keys = keys
        self.name = name
        self.random = random.Random(f"{seed}/{name}")
        self.notes: list[Note] = []
        self.seen: list[Seen] = []
        self.answered: defaultdict[tuple[str, str], list[Answered]] = defaultdict(list)
        self.sent: list[Sent] = []
        self._numbers = count(1)

    def act(self) -> Act:
        return Act(op=f"{self.name}-{next(self._numbers):x}", actor=f"worker:{self.name}")

    def end(self) -> Position:
        """Where the stream ends now."""
        last = self.store.xrevrange(self.keys.events, count=1)
        return position(last[0][0]) if last else position("")

    def ask(self, asked: Asked, plan_of: Callable[[Act], Plan[Any]]) -> None:
        act, lo = self.act(), self.end()
        outcome: Outcome = "done"
        event_id = ""
        try:
            answer = run(plan_of(act), self.store)
        except BrokerBusy:
            outcome = "given up"
        else:
            event_id = answer if isinstance(answer, str) else getattr(answer, "event_id", "")
            if getattr(answer, "refused", False):
                outcome = "given up"
        self.notes.append(Note(act.op, asked, lo, self.end(), outcome, event_id))

    def rest(self, at_most_s: float) -> None:
        time.sleep(self.random.random() * at_most_s)


Turn: TypeAlias = Callable[[Caller, int], None]  # one of a client's turns, and its number


def registers(
    name: str,
    table: Table = "small",
    number: int = 0,
    *,
    at: str = "",
    acting: bool | None = None,
    pause_s: float = 0.0,
    slow: bool = False,
    dies: bool = False,
    **rest: Any,
) -> Turn:
    """A new data version each turn, which all queue data carry as readQueueNums; `{}` in the name is the turn.

    `slow` waits a little before each request, `dies` asks in a process that is killed on the way."""
    template = name

    def turn(caller: Caller, version: int) -> None:
        caller.rest(pause_s)
        name = template.format(version)
        where = at or address(name, number)
        own = 100 * version + int(caller.name.removeprefix("w"))  # no two clients send the same version
        text = f"{own},8,6,0"
        said = registration(
            name, number, dict.fromkeys(TABLES[table], text), at=where, version=own, acting=acting, **rest
        )
        asked = Registering(name, number, where, table, text, acting)
        if dies:
            _die_asking(caller, asked, version, lambda act: register(caller.keys, said, act))
            return

        def plan_of(act: Act) -> Plan[Any]:
            plan = register(caller.keys, said, act, owner=f"{caller.name}/1")
            return _slowed(plan, caller) if slow else plan

        caller.ask(asked, plan_of)

    return turn


def unregisters(name: str, number: int = 0, *, at: str = "", pause_s: float = 0.01) -> Turn:
    where = at or address(name, number)

    def turn(caller: Caller, _: int) -> None:
        caller.rest(pause_s)
        caller.ask(
            Leaving(name, where), lambda act: unregister(caller.keys, CLUSTER, where, name, str(number), act)
        )

    return turn


def loses(name: str, owner: str, number: int = 0) -> Turn:
    """Its connection ends; whoever was the last owner is removed unless it has been heard of since."""
    where = address(name, number)

    def turn(caller: Caller, _: int) -> None:
        caller.rest(0.01)
        orphan = run(let_go(caller.keys, CLUSTER, where, owner), caller.store)
        if orphan is not None:
            caller.ask(Upkeep(), lambda act: lose(caller.keys, orphan, "lost", act))

    return turn


def beats(name: str, number: int = 0, *, pause_s: float = 0.005) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        caller.rest(pause_s)
        caller.ask(Upkeep(), lambda act: beat(caller.keys, CLUSTER, address(name, number), act))

    return turn


def keeps_up() -> Turn:
    """The jobs; a checkpoint round is always under way."""

    def turn(caller: Caller, _: int) -> None:
        caller.rest(0.01)
        run(ask(caller.keys, "request", caller.act()), caller.store)
        run(carry_on(caller.keys, caller.act(), slices=2), caller.store)
        run(expire(caller.keys, caller.act()), caller.store)
        run(_slowed(settle_owed(caller.keys, caller.act()), caller), caller.store)

    return turn


def rewrites(name: str) -> Turn:
    def turn(caller: Caller, number: int) -> None:
        caller.rest(0.03)
        wipe = number % 2 == 1
        rewrite = wipe_write_perm if wipe else add_write_perm
        caller.ask(Rewriting(name, wipe), lambda act: rewrite(caller.keys, name, act))

    return turn


def deletes(topic: str) -> Turn:
    def turn(caller: Caller, _: int) -> None:
        caller.rest(0.03)
        caller.ask(Deleting(topic), lambda act: delete_topic(caller.keys, topic, "", act))

    return turn


def sets(topic: str, name: str) -> Turn:
    def turn(caller: Caller, number: int) -> None:
        caller.rest(0.01)
        data = QueueData(name, number, 3, 6, 0)
        caller.ask(
            Setting(topic, name, f"{number},3,6,0"),
            lambda act: register_topic(caller.keys, topic, [data], act),
        )

    return turn


def reads(topics: Iterable[str] = SMALL) -> Turn:
    """Routes, cluster info, the clock and the end of the stream in one transaction."""
    names = tuple(topics)

    def turn(caller: Caller, _: int) -> None:
        caller.rest(0.001)
        clusters = cluster_info(caller.keys)
        pipe = caller.store.pipeline(transaction=True)
        pipe.time()
        for asked in (next(clusters), routes_call(caller.keys, names)):
            assert isinstance(asked, ScriptCall)
            pipe.evalsha(script(asked.name).sha, len(asked.keys), *asked.keys, *asked.args)
        pipe.xrevrange(caller.keys.events, count=1)
        pipe.time()
        first, clusters_found, found, last, end = pipe.execute()
        info = _result(clusters, clusters_found)
        read = RoutesRead(found)
        assert len(read) == len(names)
        caller.seen.append(
            Seen(
                position(last[0][0]) if last else position(""),
                _ms(first),
                _ms(end),
                {topic: seen_route(read.route(topic, at)) for at, topic in enumerate(names)},
                {name: data.broker_addrs for name, data in info.broker_addr_table.items()},
            )
        )

    return turn


def seen_route(stored: Any) -> Route:
    try:
        return as_route(route_of(stored, RouteView()))
    except TopicNotFound:
        return {}


def as_route(found: TopicRouteData) -> Route:
    members = {data.broker_name: data.broker_addrs for data in found.broker_datas}
    assert members.keys() == {data.broker_name for data in found.queue_datas}, f"torn: {found}"
    return {
        q.broker_name: (
            dict(sorted(members[q.broker_name].items())),
            f"{q.read_queue_nums},{q.write_queue_nums},{q.perm},{q.topic_sys_flag}",
        )
        for q in found.queue_datas
    }


def race(
    url: str, keys: Keys, turns: dict[str, Turn], meanwhile: dict[str, Turn], rounds: int, seed: int
) -> dict[str, Report]:
    """Every client takes its turns at once; those of `meanwhile` go on until the others are done. What they report."""
    with connect(url) as store:
        for name in ("route", "clusters"):
            store.script_load(script(name).source)
    context = mp.get_context("fork")
    results: Any = context.Queue()
    over = context.Event()

    def start(name: str, turn: Turn, numbers: Iterable[int]) -> Any:
        process = context.Process(target=_client, args=(url, keys, name, seed, turn, numbers, results))
        process.start()
        return process

    until_over = takewhile(lambda _: not over.is_set(), count(1))
    processes = [start(name, turn, until_over) for name, turn in meanwhile.items()]
    processes += [start(name, turn, range(1, rounds + 1)) for name, turn in turns.items()]
    reports = dict(results.get(timeout=FINISH_S) for _ in turns)
    over.set()
    reports |= dict(results.get(timeout=FINISH_S) for _ in meanwhile)
    for process in processes:
        process.join()
    return reports


def _client(
    url: str,
    keys: Keys,
    name: str,
    seed: int,
    turn: Turn,
    numbers: Iterable[int],
    results: Any,
) -> None:
    caller = Caller(url, keys, name, seed)
    error = ""
    try:
        for number in numbers:
            turn(caller, number)
    except Exception as failure:
        error = f"{name}: {failure!r}"
    results.put((name, Report(caller.notes, caller.seen, list(caller.answered.values()), caller.sent, error)))


def _die_asking(caller: Caller, asked: Asked, turn: int, plan_of: Callable[[Act], Plan[Any]]) -> None:
    """Ask in a process that is killed when it has had so many replies, turn by turn another number."""
    act, lo = caller.act(), caller.end()
    child = os.fork()
    if child == 0:
        run(_cut_short(plan_of(act), 1 + turn % STEPS), connect(caller.url))
    os.waitpid(child, 0)
    caller.notes.append(Note(act.op, asked, lo, caller.end(), "killed"))


def _cut_short(plan: Plan[Any], replies: int) -> Plan[None]:
    """A plan that ends with its process, at the latest when it has had so many replies."""
    try:
        request = next(plan)
        for _ in range(replies):
            request = plan.send((yield request))
    except (StopIteration, BrokerBusy):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _slowed(plan: Plan[Any], caller: Caller) -> Plan[Any]:
    """A plan whose requests are late, as on a busy machine."""
    request = next(plan)
    while True:
        caller.rest(SLOW_S)
        try:
            request = plan.send((yield request))
        except StopIteration as done:
            return done.value


def _result(plan: Plan[Any], reply: Any) -> Any:
    try:
        plan.send(reply)
    except StopIteration as done:
        return done.value
    raise AssertionError("a read of more than one request")


def _ms(clock: tuple[int, int]) -> int:
    return clock[0] * 1000 + clock[1] // 1000
