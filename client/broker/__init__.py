"""What a broker does towards its name servers: it announces itself and its topics, and stays announced.

`config` and `topics` say what is announced, `messages` how that is put into requests, `rounds` how a request goes
to all name servers, `schedule` when, and `agent` is all of it."""

from client.broker.agent import AsyncBrokerAgent
from client.broker.blocking import BrokerAgent
from client.broker.config import BrokerConfig, StaticTopicSettings, TopicSettings, read_config
from client.broker.events import (
    Event,
    Failed,
    MasterChanged,
    MinBrokerIdChanged,
    OrderTopicsChanged,
    Registered,
    Unregistered,
)
from client.broker.run import announce, run_agent

__all__ = [
    "AsyncBrokerAgent",
    "BrokerAgent",
    "BrokerConfig",
    "Event",
    "Failed",
    "MasterChanged",
    "MinBrokerIdChanged",
    "OrderTopicsChanged",
    "Registered",
    "StaticTopicSettings",
    "TopicSettings",
    "Unregistered",
    "announce",
    "read_config",
    "run_agent",
]
