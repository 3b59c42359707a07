"""`python -m client.roundtrip HOST:PORT...`: registers a broker, looks its route up, and unregisters it, over the wire.

Tells whether a deployment works, from a client's side: the broker is announced at the first address, and asked for at
every address that any of the hosts has, over several fresh connections to each, as the workers behind them differ. It
is there for a moment, under a name that nobody else has. Exit code 0 if all went well, 1 if not, 2 for wrong usage.
"""

import argparse
import secrets
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from client.addresses.syntax import split_address
from client.broker.agent import options_for
from client.broker.blocking import BrokerAgent
from client.broker.config import BrokerConfig, TopicSettings
from client.broker.events import Event, Failed, Registered, Unregistered
from client.errors import AddressError, ClientError
from client.name_server.client import NameServer
from client.wire.options import RemotingOptions
from client.wire.tls import client_context
from remoting.route import TopicRouteData

CONNECTIONS: Final = 4
WITHIN_S: Final = 10.0
"""How long a change may take to be seen everywhere; a worker that answers at all follows within milliseconds."""
CALL_S: Final = 3.0
PAUSE_S: Final = 0.05
FAILED: Final = 1


class RoundTripFailed(Exception):
    """What did not happen, and where."""


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """One broker's way in and out; `addresses` are `host:port`, the first takes the registration."""

    addresses: tuple[str, ...]
    options: RemotingOptions = RemotingOptions()
    connections: int = CONNECTIONS
    within_s: float = WITHIN_S
    name: str = msgspec.field(default_factory=lambda: f"roundtrip-{secrets.token_hex(4)}")

    @property
    def topic(self) -> str:
        return f"{self.name}-topic"

    @property
    def config(self) -> BrokerConfig:
        """Of the broker; two topics, since name servers of 5.x refuse a first registration of one."""
        topics = (TopicSettings(topic_name=self.topic), TopicSettings(topic_name=f"{self.name}-other"))
        return BrokerConfig(
            broker_name=self.name,
            broker_cluster_name=self.name,
            namesrv_addr=self.addresses[0],
            topics=topics,
            starting_topics=False,
            refresh_cluster_info=False,
        )

    def run(self, say: Callable[[str], object] = print) -> None:
        """Raises RoundTripFailed; the broker is taken out again whatever happens."""
        told: list[Event] = []
        config = self.config
        options = replace(options_for(config), tls=self.options.tls)
        with BrokerAgent(config, listener=told.append, options=options) as agent:
            self._see_told(told, Registered, "the registration was not taken")
            say(f"registered {self.name} at {self.addresses[0]}")
            address = agent.config.broker_addr
            self._see_everywhere(
                lambda route: route is not None and _serves(route, self.name, address),
                f"no route of topic {self.topic}",
            )
            say(f"its route is known {self._where}")
        self._see_told(told, Unregistered, "the broker was not taken out")
        say(f"unregistered {self.name}")
        self._see_everywhere(lambda route: route is None, f"there still is a route of topic {self.topic}")
        say(f"its route is gone {self._where}")

    @property
    def _where(self) -> str:
        return f"at {', '.join(self.addresses)} ({self.connections} connections each)"

    def _see_told(self, told: Sequence[Event], wanted: type[Event], failure: str) -> None:
        if not any(isinstance(event, wanted) for event in told):
            why = "".join(f": {event.error}" for event in told if isinstance(event, Failed))
            raise RoundTripFailed(f"{self.addresses[0]}: {failure}{why}")

    def _see_everywhere(self, right: Callable[[TopicRouteData | None], bool], failure: str) -> None:
        for address in self.addresses:
            for _ in range(self.connections):
                self._see(address, right, failure)

    def _see(self, address: str, right: Callable[[TopicRouteData | None], bool], failure: str) -> None:
        deadline = time.monotonic() + self.within_s
        call_s = min(CALL_S, self.within_s)
        while True:
            last = failure
            try:
                with NameServer(address, options=self.options, timeout_s=call_s) as name_server:
                    if right(name_server.get_route(self.topic)):
                        return
            except ClientError as error:
                last = str(error).removeprefix(f"{address}: ")
            if time.monotonic() > deadline:
                raise RoundTripFailed(f"{address}: {last}, after {self.within_s:g} s")
            time.sleep(PAUSE_S)


def _serves(route: TopicRouteData, broker: str, address: str) -> bool:
    listed = [data.broker_addrs for data in route.broker_datas if data.broker_name == broker]
    return [dict(addrs) for addrs in listed] == [{0: address}] and [
        queues.broker_name for queues in route.queue_datas
    ] == [broker]


def resolved(texts: Sequence[str]) -> tuple[str, ...]:
    """Every address that these have, each once: a headless Service of Kubernetes has one for each pod.

    AddressError for a text that is no address or a name that nobody knows."""
    found: dict[str, None] = {}
    for text in texts:
        host, port = split_address(text)
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise AddressError(f"{text}: {error.strerror or error}") from error
        for family, *_, address in infos:
            shown = f"[{address[0]}]" if family == socket.AF_INET6 else address[0]
            found[f"{shown}:{port}"] = None
    return tuple(found)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The words of a call, else those of this process; wrong ones end it."""
    parser = argparse.ArgumentParser(prog="python -m client.roundtrip", description=__doc__)
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="to each address")
    parser.add_argument(
        "--within", type=float, default=WITHIN_S, help="seconds that a change may take to be seen"
    )
    parser.add_argument(
        "--tls", action="store_true", help="speak TLS; no certificate is checked without --ca"
    )
    parser.add_argument("--ca", help="PEM file: who has signed the name servers' certificates")
    parser.add_argument("--certificate", help="PEM file: shown to the name servers")
    parser.add_argument("--key", help="PEM file: its key")
    return parser.parse_args(words)


def main() -> int:
    """-> the exit code."""
    given = arguments()
    try:
        tls = _context(given) if given.tls else None
        RoundTrip(
            addresses=resolved(given.addresses),
            options=RemotingOptions(tls=tls),
            connections=given.connections,
            within_s=given.within,
        ).run(lambda text: print(text, flush=True))
    except (RoundTripFailed, ClientError, OSError) as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return FAILED
    return 0


def _context(given: argparse.Namespace) -> ssl.SSLContext:
    return client_context(
        trust=given.ca, certificate=given.certificate, key=given.key, auth_server=given.ca is not None
    )


if __name__ == "__main__":
    sys.exit(main())
