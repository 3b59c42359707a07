"""The events of an agent, for its listener."""

import logging
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from mqns.errors import ClientError
from mqns.name_server import calls
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command

log = logging.getLogger("mqns.broker")


class Registered(msgspec.Struct, frozen=True):
    """A name server accepted a registration; the fields are those of its response.

    `order_topics` is None if the response had no table of them."""

    address: str
    master_addr: str | None = None
    ha_server_addr: str | None = None
    order_topics: tuple[str, ...] | None = None


class Unregistered(msgspec.Struct, frozen=True):
    """A name server accepted the unregistration."""

    address: str


class Failed(msgspec.Struct, frozen=True):
    """A request failed; the next round retries."""

    address: str
    code: RequestCode
    error: ClientError


class MasterChanged(msgspec.Struct, frozen=True):
    """A slave has another master; None is no master."""

    master_addr: str | None
    ha_server_addr: str | None


class MinBrokerIdChanged(msgspec.Struct, frozen=True):
    """Another broker of the name has the smallest id. Unknown addresses are None."""

    min_broker_id: int
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


class OrderTopicsChanged(msgspec.Struct, frozen=True):
    """The order topics changed to these."""

    order_topics: frozenset[str]


BrokerEvent: TypeAlias = (
    Registered | Unregistered | Failed | MasterChanged | MinBrokerIdChanged | OrderTopicsChanged
)
Listener: TypeAlias = Callable[[BrokerEvent], object]


def registered(address: str, result: calls.RegisterBrokerResult) -> Registered:
    """Return the event of a response to a registration."""
    order_topics = tuple(result.order_topics.table) if result.order_topics else None
    return Registered(address, result.master_addr, result.ha_server_addr, order_topics)


def pushed(push: Command) -> MinBrokerIdChanged | None:
    """Return the event of a NOTIFY_MIN_BROKER_ID_CHANGE (905), or None if it has no id."""
    try:
        smallest = int(push.get("minBrokerId") or "")
    except ValueError:
        return None
    return MinBrokerIdChanged(
        smallest, push.get("minBrokerAddr"), push.get("offlineBrokerAddr"), push.get("haBrokerAddr")
    )
