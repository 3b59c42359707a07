"""The periodic jobs of a broker."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from mqns.broker.config import BrokerConfig

FIRST_ROUND_S = 10.0
HEARTBEATS_FIRST_S = 1.0
MEMBER_GROUP_PERIOD_S = 1.0
CLUSTER_INFO_FIRST_S, CLUSTER_INFO_PERIOD_S = 10.0, 5.0


class Job(msgspec.Struct, frozen=True):
    """A job to run `first_s` after the start and every `period_s` from then on."""

    first_s: float
    period_s: float
    run: Callable[[], Awaitable[object]]


class Jobs(msgspec.Struct, frozen=True):
    """The functions of the periodic jobs."""

    register: Callable[[], Awaitable[object]]
    heartbeat: Callable[[], Awaitable[object]]
    query_members: Callable[[], Awaitable[object]]
    query_cluster: Callable[[], Awaitable[object]]


def schedule(config: BrokerConfig, jobs: Jobs) -> list[Job]:
    """Return the jobs of this broker."""
    wanted = [Job(FIRST_ROUND_S, config.period_s, jobs.register)]
    if config.is_5x and config.enable_slave_acting_master:
        interval_s = config.broker_heartbeat_interval / 1000
        wanted.append(Job(HEARTBEATS_FIRST_S, interval_s, jobs.heartbeat))
        wanted.append(Job(HEARTBEATS_FIRST_S, MEMBER_GROUP_PERIOD_S, jobs.query_members))
    if config.is_5x and config.refresh_cluster_info:
        wanted.append(Job(CLUSTER_INFO_FIRST_S, CLUSTER_INFO_PERIOD_S, jobs.query_cluster))
    return wanted


async def run_periodically(job: Job) -> None:
    """Run a job at a fixed rate until cancelled; a late run is followed at once by one run, not by all missed ones."""
    loop = asyncio.get_running_loop()
    due = loop.time() + job.first_s
    while True:
        await asyncio.sleep(due - loop.time())
        await job.run()
        due = max(due + job.period_s, loop.time())
