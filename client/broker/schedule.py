"""When a broker does what it does by itself."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from client.broker.config import BrokerConfig

FIRST_ROUND_S = 10.0
HEARTBEATS_FIRST_S = 1.0
MEMBER_GROUP_PERIOD_S = 1.0
CLUSTER_INFO_FIRST_S, CLUSTER_INFO_PERIOD_S = 10.0, 5.0


class Job(msgspec.Struct, frozen=True):
    """Something to be done `first_s` after the start and every `period_s` from then on."""

    first_s: float
    period_s: float
    do: Callable[[], Awaitable[object]]


class Jobs(msgspec.Struct, frozen=True):
    """What a broker can do by itself."""

    register: Callable[[], Awaitable[object]]
    beat: Callable[[], Awaitable[object]]
    ask_members: Callable[[], Awaitable[object]]
    ask_cluster: Callable[[], Awaitable[object]]


def schedule(config: BrokerConfig, jobs: Jobs) -> list[Job]:
    """Which of it this broker does, and when."""
    wanted = [Job(FIRST_ROUND_S, config.period_s, jobs.register)]
    if config.plays_5x and config.enable_slave_acting_master:
        interval_s = config.broker_heartbeat_interval / 1000
        wanted.append(Job(HEARTBEATS_FIRST_S, interval_s, jobs.beat))
        wanted.append(Job(HEARTBEATS_FIRST_S, MEMBER_GROUP_PERIOD_S, jobs.ask_members))
    if config.plays_5x and config.refresh_cluster_info:
        wanted.append(Job(CLUSTER_INFO_FIRST_S, CLUSTER_INFO_PERIOD_S, jobs.ask_cluster))
    return wanted


async def keep_doing(job: Job) -> None:
    """For ever, at a fixed rate. What is due while it is still being done is done once, right after."""
    loop = asyncio.get_running_loop()
    due = loop.time() + job.first_s
    while True:
        await asyncio.sleep(due - loop.time())
        await job.do()
        due = max(due + job.period_s, loop.time())
