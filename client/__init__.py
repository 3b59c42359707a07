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
from client.heartbeats.members import Consumer
from client.heartbeats.subscriptions import Expression, sql92
from client.mq_client import AsyncMqClient, MqClientOptions
from client.mq_client_blocking import MqClient
from client.wire.acl import AclCredentials
from client.wire.blocking_client import RemotingClient
from client.wire.call import Call
from client.wire.options import RemotingOptions
from client.wire.remoting_client import AsyncRemotingClient
from client.wire.request import Request
from client.wire.tls import client_context
from client.wire.zone import Zone

__all__ = [
    "AclCredentials",
    "AddressError",
    "AnswerError",
    "AsyncMqClient",
    "AsyncRemotingClient",
    "Call",
    "CallTimeout",
    "ClientError",
    "ConfigError",
    "ConnectError",
    "ConnectionClosed",
    "Consumer",
    "Expression",
    "MqClient",
    "MqClientOptions",
    "RemotingClient",
    "RemotingError",
    "RemotingOptions",
    "Request",
    "SendError",
    "SubscriptionError",
    "TooBusy",
    "Zone",
    "client_context",
    "sql92",
]
