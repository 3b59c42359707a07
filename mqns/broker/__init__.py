"""The broker agent: registers a broker and its topics at name servers and keeps them registered.

`config` and `topics` describe the broker, `requests` builds its calls, `rounds` sends a call to all name servers,
`schedule` says when, `server` is the broker's port, and `agent` puts them together."""

from mqns.broker.agent import AsyncBrokerAgent
from mqns.broker.config import BrokerConfig, StaticTopicSettings, TopicSettings, read_config
from mqns.broker.events import (
    BrokerEvent,
    Failed,
    MasterChanged,
    MinBrokerIdChanged,
    OrderTopicsChanged,
    Registered,
    Unregistered,
)
from mqns.broker.run import announce, run_agent
from mqns.broker.sync_agent import BrokerAgent

__all__ = [
    "AsyncBrokerAgent",
    "BrokerAgent",
    "BrokerConfig",
    "BrokerEvent",
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
