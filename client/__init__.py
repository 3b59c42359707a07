"""The other half of the wire: what brokers, clients and `mqadmin` do, as a library.

Imports `remoting` and nothing else of ours."""

from client.errors import (
    AddressError,
    AnswerError,
    CallTimeout,
    ClientError,
    ConfigError,
    ConnectError,
    ConnectionClosed,
    RemotingError,
    SendError,
    SubscriptionError,
    TooBusy,
)
from client.wire.options import RemotingOptions
from client.wire.remoting_client import RemotingClient
from client.wire.request import Request

__all__ = [
    "AddressError",
    "AnswerError",
    "CallTimeout",
    "ClientError",
    "ConfigError",
    "ConnectError",
    "ConnectionClosed",
    "RemotingClient",
    "RemotingError",
    "RemotingOptions",
    "Request",
    "SendError",
    "SubscriptionError",
    "TooBusy",
]
