"""What an agent tells whoever listens: one value for each thing that happened."""

import logging
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from client.errors import ClientError
from client.name_server import calls
from remoting.codes import RequestCode
from remoting.command import Command

log = logging.getLogger("client.broker")


class Registered(msgspec.Struct, frozen=True):
    """A name server took a registration, and this is what it answered.

    `order_topics` is None where the answer had no table of them."""

    address: str
    master_addr: str | None = None
    ha_server_addr: str | None = None
    order_topics: tuple[str, ...] | None = None


class Unregistered(msgspec.Struct, frozen=True):
    """A name server has forgotten the broker."""

    address: str


class Failed(msgspec.Struct, frozen=True):
    """A request came to nothing; the next round tries again."""

    address: str
    code: RequestCode
    error: ClientError


class MasterChanged(msgspec.Struct, frozen=True):
    """What a slave is to follow from now on; None is no master."""

    master_addr: str | None
    ha_server_addr: str | None


class MinBrokerIdChanged(msgspec.Struct, frozen=True):
    """Another broker of the name has the smallest id now. Addresses are None where nobody told them."""

    min_broker_id: int
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


class OrderTopicsChanged(msgspec.Struct, frozen=True):
    """These are the order topics from now on."""

    order_topics: frozenset[str]


Event: TypeAlias = (
    Registered | Unregistered | Failed | MasterChanged | MinBrokerIdChanged | OrderTopicsChanged
)
Listener: TypeAlias = Callable[[Event], object]


def registered(address: str, answer: calls.Registered) -> Registered:
    """The event of an answer to a registration."""
    order_topics = tuple(answer.order_topics.table) if answer.order_topics else None
    return Registered(address, answer.master_addr, answer.ha_server_addr, order_topics)


def pushed(push: Command) -> MinBrokerIdChanged | None:
    """The event of a NOTIFY_MIN_BROKER_ID_CHANGE (905); None when it names no id."""
    try:
        smallest = int(push.get("minBrokerId") or "")
    except ValueError:
        return None
    return MinBrokerIdChanged(
        smallest, push.get("minBrokerAddr"), push.get("offlineBrokerAddr"), push.get("haBrokerAddr")
    )


def log_event(event: Event) -> None:
    """What happens to events if nothing else is said."""
    if isinstance(event, Failed):
        log.warning("%s: %s failed: %s", event.address, event.code.name, event.error)
    else:
        log.log(logging.DEBUG if isinstance(event, Registered) else logging.INFO, "%s", event)
