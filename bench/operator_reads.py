"""What reads of operators cost with many brokers: a scrape, the doctor's findings, and the counts of a scheduler.

    python -m bench.operator_reads [--brokers N ...] [--topics N] [--times N]

Each is carried out in this process on an embedded store, without its caches and without HTTP's transport. A line has
the medians: how long it took, the processor time of this process, and that of Redis."""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time

import redis

from api import doctor
from api.app import create_app
from bench.workloads import registered
from metrics import store as metrics_store
from metrics.files import VARIABLE
from mqnamesrv.store import opened
from registry import topic_counts
from registry.doctor import findings
from registry.drivers import run
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.members import TIMEOUT_MAX_MS
from registry.options.catalogue import Options
from registry.plans import Origin, Plan
from registry.registration.register import Registration, register
from registry.store.connect import connect
from rocketmq_remoting.command import decode

IN_A_CLUSTER = 100
ORIGIN = Origin("bench", "bench")


def main() -> None:
    """Print a table for each number of brokers."""
    parser = argparse.ArgumentParser(description="what reads of operators cost")
    parser.add_argument("--brokers", type=int, nargs="+", default=[1_000, 3_000])
    parser.add_argument("--topics", type=int, default=10, help="of each broker")
    parser.add_argument("--times", type=int, default=7, help="how often each is carried out")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ[VARIABLE] = stack.enter_context(tempfile.TemporaryDirectory())
        options = Options(
            redis_url=stack.enter_context(opened("", folder)),
            max_brokers=max(given.brokers),
            max_percent_of_host=100,
        )
        store = stack.enter_context(connect(options.redis_url))
        brokers = _registrations(max(given.brokers), given.topics)
        done = 0
        for number in sorted(given.brokers):
            for _ in range(number - done):
                run(register(Keys(), next(brokers), ORIGIN, limits=Limits.of(options)), store)
            done = number
            print(f"\n| {number:,} brokers | took, ms | this process, ms | Redis, ms |\n|---|---|---|---|")
            for name, read in _reads(options, store).items():
                print(f"| {name} | {' | '.join(_times(read, store, given.times))} |", flush=True)


def _registrations(brokers: int, topics: int) -> Iterator[Registration]:
    for number, frame in enumerate(registered(brokers, topics)()):
        command = decode(frame[4:])
        fields = command.ext or {}
        yield Registration(
            cluster=f"{fields['clusterName']}-{number // IN_A_CLUSTER}",
            name=fields["brokerName"],
            address=fields["brokerAddr"],
            id=0,
            timeout_ms=TIMEOUT_MAX_MS,
            version=command.version,
            body=command.body,
        )


def _reads(options: Options, store: redis.Redis) -> dict[str, Callable[[], object]]:
    keys, limits = Keys(), Limits.of(options)
    client = create_app(options, redis=store).test_client()
    metrics_store.CACHED_S = metrics_store.CACHED_TIMES = doctor.KEPT_FOR_EACH_S = 0.0  # type: ignore[misc, assignment]
    before = run(topic_counts.count(keys), store)
    run(topic_counts.store(keys, before.counts), store)

    def plan(made: Callable[[], Plan[object]]) -> Callable[[], object]:
        return lambda: run(made(), store)

    return {
        "`GET /metrics`": lambda: client.get("/metrics"),
        "`GET /v1/doctor`": lambda: client.get("/v1/doctor"),
        "scheduler: findings, each 30 s": plan(lambda: findings.count(keys, limits)),
        "scheduler: topics, each 10 s, unchanged": plan(lambda: topic_counts.count(keys, before)),
        "scheduler: topics, all, with its pauses": plan(lambda: topic_counts.count(keys)),
    }


def _times(read: Callable[[], object], store: redis.Redis, times: int) -> Sequence[str]:
    measured = [_time(read, store) for _ in range(times)]
    return [f"{statistics.median(column) * 1000:,.0f}" for column in zip(*measured, strict=True)]


def _time(read: Callable[[], object], store: redis.Redis) -> tuple[float, float, float]:
    redis_s, cpu_s, began_s = _redis_s(store), process_time(), perf_counter()
    read()
    took_s, cpu_s = perf_counter() - began_s, process_time() - cpu_s
    return took_s, cpu_s, _redis_s(store) - redis_s


def _redis_s(store: redis.Redis) -> float:
    return float(sum(command["usec"] for command in store.info("commandstats").values())) / 1e6


if __name__ == "__main__":
    main()
