"""Typed calls to name servers."""

from mqns.name_server.calls import BrokerIdentity, QueryDataVersionResult, RegisterBrokerResult
from mqns.name_server.client import AsyncNameServerClient, NameServerClient

__all__ = [
    "AsyncNameServerClient",
    "BrokerIdentity",
    "NameServerClient",
    "QueryDataVersionResult",
    "RegisterBrokerResult",
]
