"""RocketMQ client library for name servers: calls, routes, heartbeats, broker registration.

Imports `rocketmq_remoting` and no other package of this project."""

from mqns.errors import (
    AddressError,
    CallTimeout,
    ClientError,
    ConfigError,
    ConnectError,
    ConnectionClosed,
    RemotingError,
    ResponseError,
    SendError,
    SubscriptionError,
    TooBusy,
)
from mqns.heartbeats.groups import ConsumerGroup
from mqns.heartbeats.subscriptions import Expression, sql92
from mqns.mq_client import AsyncMqClient, MqClientOptions
from mqns.remoting.acl import AclCredentials
from mqns.remoting.call import Call
from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from mqns.remoting.sync_client import RemotingClient
from mqns.remoting.tls import tls_context
from mqns.remoting.zone import Zone
from mqns.sync_mq_client import MqClient

__all__ = [
    "AclCredentials",
    "AddressError",
    "AsyncMqClient",
    "AsyncRemotingClient",
    "Call",
    "CallTimeout",
    "ClientError",
    "ConfigError",
    "ConnectError",
    "ConnectionClosed",
    "ConsumerGroup",
    "Expression",
    "MqClient",
    "MqClientOptions",
    "RemotingClient",
    "RemotingError",
    "RemotingOptions",
    "Request",
    "ResponseError",
    "SendError",
    "SubscriptionError",
    "TooBusy",
    "Zone",
    "sql92",
    "tls_context",
]
