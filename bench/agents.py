"""Many agents in one process at the real schedule of brokers: what they cost, and what they cost the server.

    python -m bench.agents [--agents N] [--topics N] [--seconds S] [--release R] [--shared] [--name-server ADDR]

Each agent is a broker of its own: its own connection, its own 103 every 30 s, and from 5.x its own 106 every 5 s. They
start within a period, one after the other. Ten make a cluster and have the same topics. Starts a name server on one
core, or takes a running one, stays on the other core itself, and prints what both used once all had registered twice.
"""

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from bench.fleet import PERIOD_S, Fleet
from bench.servers import Server, cpu_seconds, this_server
from bench.workloads import address
from mqns.broker import BrokerConfig, TopicSettings
from testbed.ports import free_port

AGENTS, TOPICS, SECONDS = 1_000, 1_000, 120.0
IN_A_CLUSTER = 10
MB = 1e6


def brokers(agents: int, topics: int, name_servers: str, release: str = "5.5.0") -> Iterator[BrokerConfig]:
    """Yield configurations of `number` brokers, ten to a cluster, each with its own topics only."""
    for first in range(0, agents, IN_A_CLUSTER):
        cluster = f"fleet-{first // IN_A_CLUSTER:03d}"
        shared = tuple(
            TopicSettings(topic_name=f"{cluster}_topic_{number:04d}", read_queue_nums=8, write_queue_nums=8)
            for number in range(topics)
        )
        for number in range(first, min(first + IN_A_CLUSTER, agents)):
            ip, _, port = address(number).rpartition(":")
            yield BrokerConfig(
                broker_name=f"fleet-broker-{number:04d}",
                broker_cluster_name=cluster,
                broker_ip1=ip,
                listen_port=int(port),
                namesrv_addr=name_servers,
                topics=shared,
                starting_topics=False,
                version=release,
            )


class Use(msgspec.Struct, frozen=True):
    """CPU seconds so far, and resident memory in bytes."""

    cpu_s: float
    rss: int

    @classmethod
    def of_this_process(cls) -> Self:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(cpu_seconds(os.getpid()), pages * os.sysconf("SC_PAGE_SIZE"))

    @classmethod
    def of(cls, server: Server) -> Self:
        return cls(server.cpu_seconds(), sum(server.rss_bytes().values()))


class Outcome(msgspec.Struct, frozen=True):
    """CPU and memory of both sides over `seconds` of the load, and its registrations and failures."""

    seconds: float
    load: tuple[Use, Use]
    server: tuple[Use, Use] | None
    registered: int
    failures: Counter[str]
    ended_in_s: float

    def lines(self, agents: int) -> Iterator[str]:
        """Yield the lines of a Markdown table."""
        due = agents * self.seconds / PERIOD_S
        yield f"{self.registered} registrations in {self.seconds:.0f} s ({due:.0f} were due)"
        yield f"failures: {dict(self.failures) or 'none'}; all had unregistered within {self.ended_in_s:.1f} s"
        yield ""
        yield "| | CPU of a core | memory | for each agent |"
        yield "|---|---|---|---|"
        for name, use in {"agents": self.load, "name server": self.server}.items():
            if use is not None:
                before, after = use
                cpu = (after.cpu_s - before.cpu_s) / self.seconds
                yield f"| {name} | {cpu:.1%} | {after.rss / MB:.0f} MB | {after.rss / agents / 1e3:.0f} kB |"


async def measured(
    configs: Sequence[BrokerConfig], seconds: float, server: Server | None, *, shared: bool
) -> Outcome:
    """Start agents, let each have a second round, and measure for `seconds`."""
    async with Fleet(configs, shared=shared) as fleet:
        print(f"{len(fleet.agents)} agents, each had its first round: {dict(fleet.counts)}", flush=True)
        await asyncio.sleep(PERIOD_S)
        used, counts, failed = _used(server), fleet.counts.copy(), fleet.failures.copy()
        began = time.monotonic()
        await asyncio.sleep(seconds)
        took_s = time.monotonic() - began
        used_then = _used(server)
        registered = fleet.counts["Registered"] - counts["Registered"]
        failures = fleet.failures - failed
        leaving = time.monotonic()
    return Outcome(
        took_s,
        (used[0], used_then[0]),
        (used[1], used_then[1]) if used[1] and used_then[1] else None,
        registered,
        failures,
        time.monotonic() - leaving,
    )


def _used(server: Server | None) -> tuple[Use, Use | None]:
    return Use.of_this_process(), Use.of(server) if server else None


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="bench.agents", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--release", default="5.5.0", help="of the brokers that are played")
    parser.add_argument("--shared", action="store_true", help="one connection for all")
    parser.add_argument("--name-server", help="host:port of a running one, of which nothing is measured")
    parser.add_argument("--workers", type=int, default=1, help="of the name server that is started")
    chosen = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the server's too, which is started from here
    cores = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        server, at = None, chosen.name_server
        if at is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            server = stack.enter_context(
                this_server(free_port(), folder, core=cores[0], workers=chosen.workers)
            )
            at = f"127.0.0.1:{server.port}"
        os.sched_setaffinity(0, {cores[-1]})
        configs = list(brokers(chosen.agents, chosen.topics, at, chosen.release))
        outcome = asyncio.run(measured(configs, chosen.seconds, server, shared=chosen.shared))
    print("\n".join(outcome.lines(chosen.agents)))


if __name__ == "__main__":
    main(sys.argv[1:])
