"""The calls that a name server answers, typed."""

from client.name_server.calls import BrokerIdentity, Registered, VersionAnswer
from client.name_server.client import AsyncNameServer, NameServer

__all__ = ["AsyncNameServer", "BrokerIdentity", "NameServer", "Registered", "VersionAnswer"]
