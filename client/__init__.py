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
from client.wire.acl import AclCredentials
from client.wire.blocking_client import BlockingRemotingClient
from client.wire.call import Call
from client.wire.options import RemotingOptions
from client.wire.remoting_client import RemotingClient
from client.wire.request import Request
from client.wire.tls import client_context
from client.wire.zone import Zone

__all__ = [
    "AclCredentials",
    "AddressError",
    "AnswerError",
    "BlockingRemotingClient",
    "Call",
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
    "Zone",
    "client_context",
]
