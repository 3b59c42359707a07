"""Clients of the races, each a process of its own that runs one worker's operations without pause."""

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

from registry.clusters import cluster_info
from registry.drivers import run
from registry.errors import BrokerBusy, TopicNotFound
from registry.events.checkpoint import checkpoint, request_round
from registry.keys import Keys
from registry.plans import Origin, Plan, ScriptCall
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.registration.heartbeat import renew_lease
from registry.registration.register import register
from registry.removal import expire, release_owner, remove_disconnected, run_deferred, unregister
from registry.routes import RoutesRead, RouteView, route_of, routes_call
from registry.scripts import script
from registry.store.connect import connect
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.route import QueueData, TopicRouteData
from tests.races.history import Position, Route, position
from tests.races.operations import (
    SMALL,
    TABLES,
    Answered,
    Deleting,
    Leaving,
    Note,
    Operation,
    Outcome,
    Registering,
    Rewriting,
    Seen,
    Sent,
    Setting,
    Table,
    Upkeep,
)
from tests.registry.brokers import address, registration

CLUSTER = "c1"
FINISH_S = 120
SLOW_S = 0.005
STEPS = 8  # of a first registration of three slices, and one more


class Report(msgspec.Struct, frozen=True):
    """The operations and reads of one client; `error` is what ended it early.

    `answered` are the lookups of one topic over one connection, `sent` the registrations acknowledged over the wire."""

    notes: list[Note] = []
    seen: list[Seen] = []
    answered: list[list[Answered]] = []
    sent: list[Sent] = []
    error: str = ""


class Caller:
    """Runs plans under the name of one worker; each is an op of its own."""

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

    def origin(self) -> Origin:
        return Origin(op=f"{self.name}-{next(self._numbers):x}", actor=f"worker:{self.name}")

    def end(self) -> Position:
        """Return the last position of the stream."""
        last = self.store.xrevrange(self.keys.events, count=1)
        return position(last[0][0]) if last else position("")

    def ask(self, operation: Operation, plan_of: Callable[[Origin], Plan[Any]]) -> None:
        origin, lo = self.origin(), self.end()
        outcome: Outcome = "done"
        event_id = ""
        try:
            result = run(plan_of(origin), self.store)
        except BrokerBusy:
            outcome = "given up"
        else:
            event_id = result if isinstance(result, str) else getattr(result, "event_id", "")
            if getattr(result, "refused", False):
                outcome = "given up"
        self.notes.append(Note(origin.op, operation, lo, self.end(), outcome, event_id))

    def rest(self, at_most_s: float) -> None:
        time.sleep(self.random.random() * at_most_s)


Step: TypeAlias = Callable[[Caller, int], None]  # a step of a client, with its number


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
) -> Step:
    """A new data version each step, which all queue data carry as readQueueNums; `{}` in the name is the step.

    `slow` waits a little before each request, `dies` runs in a process that is killed meanwhile."""
    template = name

    def step(caller: Caller, version: int) -> None:
        caller.rest(pause_s)
        name = template.format(version)
        where = at or address(name, number)
        own = 100 * version + int(caller.name.removeprefix("w"))  # no two clients send the same version
        text = f"{own},8,6,0"
        said = registration(
            name, number, dict.fromkeys(TABLES[table], text), at=where, version=own, acting=acting, **rest
        )
        operation = Registering(name, number, where, table, text, acting)
        if dies:
            _die_running(caller, operation, version, lambda origin: register(caller.keys, said, origin))
            return

        def plan_of(origin: Origin) -> Plan[Any]:
            plan = register(caller.keys, said, origin, owner=f"{caller.name}/1")
            return _slowed(plan, caller) if slow else plan

        caller.ask(operation, plan_of)

    return step


def unregisters(name: str, number: int = 0, *, at: str = "", pause_s: float = 0.01) -> Step:
    where = at or address(name, number)

    def step(caller: Caller, _: int) -> None:
        caller.rest(pause_s)
        caller.ask(
            Leaving(name, where),
            lambda origin: unregister(caller.keys, CLUSTER, where, name, str(number), origin),
        )

    return step


def disconnects(name: str, owner: str, number: int = 0) -> Step:
    """End a connection; its member is removed unless it was renewed over another one since."""
    where = address(name, number)

    def step(caller: Caller, _: int) -> None:
        caller.rest(0.01)
        member = run(release_owner(caller.keys, CLUSTER, where, owner), caller.store)
        if member is not None:
            caller.ask(Upkeep(), lambda origin: remove_disconnected(caller.keys, member, "lost", origin))

    return step


def heartbeats(name: str, number: int = 0, *, pause_s: float = 0.005) -> Step:
    def step(caller: Caller, _: int) -> None:
        caller.rest(pause_s)
        caller.ask(Upkeep(), lambda origin: renew_lease(caller.keys, CLUSTER, address(name, number), origin))

    return step


def keeps_up() -> Step:
    """Run the jobs; a checkpoint round is always under way."""

    def step(caller: Caller, _: int) -> None:
        caller.rest(0.01)
        run(request_round(caller.keys, "request", caller.origin()), caller.store)
        run(checkpoint(caller.keys, caller.origin(), slices=2), caller.store)
        run(expire(caller.keys, caller.origin()), caller.store)
        run(_slowed(run_deferred(caller.keys, caller.origin()), caller), caller.store)

    return step


def rewrites(name: str) -> Step:
    def step(caller: Caller, number: int) -> None:
        caller.rest(0.03)
        wipe = number % 2 == 1
        rewrite = wipe_write_perm if wipe else add_write_perm
        caller.ask(Rewriting(name, wipe), lambda origin: rewrite(caller.keys, name, origin))

    return step


def deletes(topic: str) -> Step:
    def step(caller: Caller, _: int) -> None:
        caller.rest(0.03)
        caller.ask(Deleting(topic), lambda origin: delete_topic(caller.keys, topic, "", origin))

    return step


def sets(topic: str, name: str) -> Step:
    def step(caller: Caller, number: int) -> None:
        caller.rest(0.01)
        data = QueueData(name, number, 3, 6, 0)
        caller.ask(
            Setting(topic, name, f"{number},3,6,0"),
            lambda origin: register_topic(caller.keys, topic, [data], origin),
        )

    return step


def reads(topics: Iterable[str] = SMALL) -> Step:
    """Read routes, cluster info, the clock and the end of the stream in one transaction."""
    names = tuple(topics)

    def step(caller: Caller, _: int) -> None:
        caller.rest(0.001)
        clusters = cluster_info(caller.keys)
        pipe = caller.store.pipeline(transaction=True)
        pipe.time()
        for request in (next(clusters), routes_call(caller.keys, names)):
            assert isinstance(request, ScriptCall)
            pipe.evalsha(script(request.name).sha, len(request.keys), *request.keys, *request.args)
        pipe.xrevrange(caller.keys.events, count=1)
        pipe.time()
        first, clusters_reply, routes_reply, last, end = pipe.execute()
        info = _result(clusters, clusters_reply)
        read = RoutesRead(routes_reply)
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

    return step


def seen_route(stored: Any) -> Route:
    try:
        return as_route(route_of(stored, RouteView()))
    except TopicNotFound:
        return {}


def as_route(route: TopicRouteData) -> Route:
    members = {data.broker_name: data.broker_addrs for data in route.broker_datas}
    assert members.keys() == {data.broker_name for data in route.queue_datas}, f"torn: {route}"
    return {
        q.broker_name: (
            dict(sorted(members[q.broker_name].items())),
            f"{q.read_queue_nums},{q.write_queue_nums},{q.perm},{q.topic_sys_flag}",
        )
        for q in route.queue_datas
    }


def race(
    url: str, keys: Keys, steps: dict[str, Step], meanwhile: dict[str, Step], rounds: int, seed: int
) -> dict[str, Report]:
    """Run all clients at once, those of `meanwhile` until the others are done, and return their reports."""
    with connect(url) as store:
        for name in ("read_routes", "read_clusters"):
            store.script_load(script(name).source)
    context = mp.get_context("fork")
    results: Any = context.Queue()
    over = context.Event()

    def start(name: str, step: Step, numbers: Iterable[int]) -> Any:
        process = context.Process(target=_client, args=(url, keys, name, seed, step, numbers, results))
        process.start()
        return process

    until_over = takewhile(lambda _: not over.is_set(), count(1))
    processes = [start(name, step, until_over) for name, step in meanwhile.items()]
    processes += [start(name, step, range(1, rounds + 1)) for name, step in steps.items()]
    reports = dict(results.get(timeout=FINISH_S) for _ in steps)
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
    step: Step,
    numbers: Iterable[int],
    results: Any,
) -> None:
    caller = Caller(url, keys, name, seed)
    error = ""
    try:
        for number in numbers:
            step(caller, number)
    except Exception as failure:
        error = f"{name}: {failure!r}: {failure}"
    results.put((name, Report(caller.notes, caller.seen, list(caller.answered.values()), caller.sent, error)))


def _die_running(
    caller: Caller, operation: Operation, step: int, plan_of: Callable[[Origin], Plan[Any]]
) -> None:
    """Run a plan in a process that is killed after some replies, whose number changes with the step."""
    origin, lo = caller.origin(), caller.end()
    child = os.fork()
    if child == 0:
        run(_cut_short(plan_of(origin), 1 + step % STEPS), connect(caller.url))
    os.waitpid(child, 0)
    caller.notes.append(Note(origin.op, operation, lo, caller.end(), "killed"))


def _cut_short(plan: Plan[Any], replies: int) -> Plan[None]:
    """Yield a plan's requests and kill this process after `replies` replies at the latest."""
    try:
        request = next(plan)
        for _ in range(replies):
            request = plan.send((yield request))
    except (StopIteration, BrokerBusy):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _slowed(plan: Plan[Any], caller: Caller) -> Plan[Any]:
    """Yield a plan's requests late, as on a busy machine."""
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
