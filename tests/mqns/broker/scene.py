"""A broker to be announced, and what an agent reports of it; the network is in memory and the clock virtual."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from mqns.broker.agent import AsyncBrokerAgent
from mqns.broker.config import BrokerConfig, TopicSettings
from mqns.broker.events import BrokerEvent
from rocketmq_remoting.command import Command
from rocketmq_remoting.registration import RegisterBrokerBody, decode_register_broker_body
from rocketmq_remoting.version import V5_5_0
from testbed.network import Frame, Network

A, B = "127.0.0.1:9876", "127.0.0.2:9876"
START_MS = 1_700_000_000_000
TA, TB = TopicSettings(topic_name="TA"), TopicSettings(topic_name="TB", read_queue_nums=4, write_queue_nums=4)
AS_4X = {"version": "4.9.7"}
QUIET = {"refresh_cluster_info": False}
Kind = TypeVar("Kind", bound=BrokerEvent)


def broker(**changes: Any) -> BrokerConfig:
    """A broker of 5.5.0 with two topics and one name server."""
    usual = {"broker_name": "broker-a", "broker_ip1": "127.0.0.1", "namesrv_addr": A, "topics": (TA, TB)}
    return BrokerConfig(**(usual | changes))


def wall_ms() -> int:
    """Moves on with the loop's clock."""
    return START_MS + int(asyncio.get_running_loop().time() * 1000)


class RecordingListener:
    """A listener that records events."""

    def __init__(self) -> None:
        self.events: list[BrokerEvent] = []

    def __call__(self, event: BrokerEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


def agent(
    network: Network,
    config: BrokerConfig,
    listener: RecordingListener | None = None,
    now_ms: Callable[[], int] = wall_ms,
) -> AsyncBrokerAgent:
    """An agent on that network."""
    return AsyncBrokerAgent(
        config, listener=listener or RecordingListener(), connect=network.connect, now_ms=now_ms
    )


def body(frame: Frame, version: int = V5_5_0) -> RegisterBrokerBody:
    """What a registration carries."""
    return decode_register_broker_body(frame.command.body, version=version, compressed=False, now_ms=0)


def silent(_: Command) -> None:
    """Answers nothing."""
