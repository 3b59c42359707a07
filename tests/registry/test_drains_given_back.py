"""What a drain gives back: the table of docs/runbook.md, and an undrained twin to which the same was done."""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from registry.drains import Drain, drain, undrain
from registry.errors import InvalidField, TopicNotFound
from registry.keys import Keys
from registry.queue_data.rewrite import add_write_perm, wipe_write_perm
from registry.routes import RouteView
from registry.topics import delete_topic, register_topic
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE, perm_text
from rocketmq_remoting.route import QueueData, TopicRouteData
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace
from tests.registry.stored import Store

PAGE = Path(__file__).parents[2] / "docs" / "runbook.md"
BEGIN = "| meanwhile | "
ABSENT = "no route"
PERMS = {perm_text(perm): perm for perm in range(8)}
Meanwhile = Generator[None, None, None]
"""What is done before the drain, and behind its `yield` what is done while the broker is drained."""


def register(ns: Namespace, perm: int, version: int = 1, number: int = 0, acting: bool | None = None) -> None:
    ns.register(
        number=number, topics={"T": f"8,8,{perm},0", "Other": "8,8,6,0"}, version=version, acting=acting
    )


def nothing(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield


def registers_the_same(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    register(ns, perm)


def restarts(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    ns.unregister()
    register(ns, perm)


def lapses_and_comes_back(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    ns.lapse()
    ns.expire()
    register(ns, perm)


def registers_without_write(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    register(ns, perm & ~PERM_WRITE, version=2)


def registers_read_and_write(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    register(ns, PERM_READ | PERM_WRITE, version=2)


def wiped(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))


def wiped_before(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    ns.run(wipe_write_perm(ns.keys, "b1", origin()))
    yield


def restored(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    ns.run(add_write_perm(ns.keys, "b1", origin()))


def set_by_an_operator(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    ns.run(register_topic(ns.keys, "T", [QueueData("b1", 8, 8, PERM_WRITE, 0)], origin()))


def registered_by_another(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    ns.register("b2", topics={"T": "4,4,6,0", "Other": "8,8,6,0"})


def deleted(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    ns.run(delete_topic(ns.keys, "T", "", origin()))


def deleted_and_registered(ns: Namespace, perm: int) -> Meanwhile:
    yield from deleted(ns, perm)
    register(ns, perm, version=2)


def drained_by_another(ns: Namespace, perm: int) -> Meanwhile:
    register(ns, perm)
    yield
    if ns.keys == DRAINED:
        ns.run(drain(ns.keys, "b1", Drain("bob", "moves", ns.now_ms() + 600_000), origin()))


def master_leaves(ns: Namespace, perm: int) -> Meanwhile:
    """The slave acts for it, and the name server itself takes the write permission."""
    register(ns, perm, acting=True)
    register(ns, perm, number=1, acting=True)
    yield
    ns.unregister()


def master_leaves_and_comes_back(ns: Namespace, perm: int) -> Meanwhile:
    yield from master_leaves(ns, perm)
    register(ns, perm, acting=True)


DONE: dict[str, Callable[[Namespace, int], Meanwhile]] = {
    "nothing": nothing,
    "the broker registers the same again": registers_the_same,
    "it restarts": restarts,
    "its lease ends, and it comes back": lapses_and_comes_back,
    "it registers the topic without write permission": registers_without_write,
    "it registers the topic with read and write": registers_read_and_write,
    "`permissions wipe` (205)": wiped,
    "`permissions wipe`, before the drain": wiped_before,
    "`permissions add` (327)": restored,
    "`PUT /v1/topics/<topic>` (217) with write permission alone": set_by_an_operator,
    "another broker registers the topic too": registered_by_another,
    "the topic is deleted (216)": deleted,
    "the topic is deleted, and the broker registers it again": deleted_and_registered,
    "another drain replaces this one": drained_by_another,
    "the master leaves, and a slave acts for it": master_leaves,
    "the master leaves, and comes back": master_leaves_and_comes_back,
}
DRAINED, TWIN = Keys("drained"), Keys("twin")


def undrained(ns: Namespace) -> None:
    ns.run(undrain(ns.keys, "b1", origin()))


def over(ns: Namespace) -> None:
    """The drain ends by its time, and that is not recorded yet."""
    until_ms = until_soon(ns)
    while ns.now_ms() < until_ms:
        pass


def until_soon(ns: Namespace) -> int:
    """Drain the broker for some ms, more on a busy machine; return the end."""
    for power in range(3, 13):
        with suppress(InvalidField):
            until_ms: int = ns.now_ms() + 2**power
            ns.run(drain(ns.keys, "b1", Drain("alice", "short", until_ms), origin()))
            return until_ms
    raise AssertionError("4 s are over before the script runs")


def over_and_recorded(ns: Namespace) -> None:
    over(ns)
    assert ns.tick().event_id


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield what is done, the permission before, that in routes while the broker is drained, that after."""
    page = PAGE.read_text()
    heading, _, *lines = page[page.index(BEGIN) :].partition("\n\n")[0].splitlines()
    before = [cell.strip("` ") for cell in heading.strip("|").split("|")[1:]]
    for line in lines:
        done, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for perm, cell in zip(before, cells, strict=True):
            meanwhile, after = (cell if ABSENT not in cell else f"{cell} → {cell}").split(" → ")
            yield done, perm, meanwhile, after


@pytest.fixture
def pair(redis: Store) -> Iterator[tuple[Namespace, Namespace]]:
    namespaces = Namespace(redis, DRAINED), Namespace(redis, TWIN)
    yield namespaces
    for ns in namespaces:
        ns.clean_up()
        ns.check()


def route(ns: Namespace) -> TopicRouteData | None:
    try:
        return ns.route("T", RouteView(acting_master=True))
    except TopicNotFound:
        return None


def shown(ns: Namespace) -> str:
    """Return the permission that routes show of the topic on b1."""
    of_topic = route(ns)
    queues = of_topic.queue_datas if of_topic else ()
    perms = [data.perm for data in queues if data.broker_name == "b1"]
    return perm_text(perms[0]) if perms else ABSENT


@pytest.mark.parametrize("end", [undrained, over, over_and_recorded])
@pytest.mark.parametrize(("done", "before", "meanwhile", "after"), [*rows()])
def test_what_is_given_back(
    pair: tuple[Namespace, Namespace],
    done: str,
    before: str,
    meanwhile: str,
    after: str,
    end: Callable[[Namespace], None],
) -> None:
    ns, twin = pair
    steps = [DONE[done](one, PERMS[before]) for one in pair]
    for step in steps:
        next(step)
    ns.run(drain(ns.keys, "b1", Drain("alice", "upgrade"), origin()))
    for step in steps:
        assert next(step, None) is None
    assert (shown(ns), shown(twin)) == (meanwhile, after)
    end(ns)
    assert (shown(ns), route(ns), ns.topics()) == (after, route(twin), twin.topics())


def test_the_table_has_every_case() -> None:
    assert {row[0] for row in rows()} == DONE.keys()
    assert {row[1] for row in rows()} == {"RW-", "R--", "-W-", "---", "RWX", "R-X"}
