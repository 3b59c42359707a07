"""`python -m mqns.roundtrip HOST:PORT...`: registers a broker, looks its route up, and unregisters it.

Checks a deployment from a client's side: the broker is registered at the first address and looked up at every address
of the hosts, over several new connections to each, since the workers behind them differ. It exists for a moment, under
a random name. Requests are signed with the key in MQNS_ACCESS_KEY and MQNS_SECRET_KEY, if there is one. Exit code 0 for
success, 1 for a failure, 2 for wrong usage.
"""

import argparse
import os
import secrets
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from mqns.addresses.syntax import split_address
from mqns.broker.agent import options_for
from mqns.broker.config import BrokerConfig, TopicSettings
from mqns.broker.events import BrokerEvent, Failed, Registered, Unregistered
from mqns.broker.sync_agent import BrokerAgent
from mqns.errors import AddressError, ClientError
from mqns.name_server.client import NameServerClient
from mqns.remoting.credentials import credentials_in
from mqns.remoting.options import RemotingOptions
from mqns.remoting.tls import tls_context
from rocketmq_remoting.route import TopicRouteData

CONNECTIONS: Final = 4
WITHIN_S: Final = 10.0
"""Most time until a change is visible everywhere; workers usually follow within milliseconds."""
CALL_S: Final = 3.0
PAUSE_S: Final = 0.05
FAILED: Final = 1


class RoundTripFailed(Exception):
    """The step that failed, and its address."""


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """Registration and unregistration of one broker; `addresses` are `host:port`, it is registered at the first."""

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
        """The broker; two topics, since name servers of 5.x refuse a first registration of one."""
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
        """Register, look up, unregister. Raises RoundTripFailed; the broker is unregistered in any case."""
        events: list[BrokerEvent] = []
        config = self.config
        options = replace(options_for(config), tls=self.options.tls, hooks=self.options.hooks)
        with BrokerAgent(config, listener=events.append, options=options) as agent:
            self._expect_event(events, Registered, "the registration was not taken")
            say(f"registered {self.name} at {self.addresses[0]}")
            address = agent.config.broker_addr
            self._expect_everywhere(
                lambda route: route is not None and _serves(route, self.name, address),
                f"no route of topic {self.topic}",
            )
            say(f"its route is known {self._where}")
        self._expect_event(events, Unregistered, "the broker was not taken out")
        say(f"unregistered {self.name}")
        self._expect_everywhere(lambda route: route is None, f"there still is a route of topic {self.topic}")
        say(f"its route is gone {self._where}")

    @property
    def _where(self) -> str:
        return f"at {', '.join(self.addresses)} ({self.connections} connections each)"

    def _expect_event(self, events: Sequence[BrokerEvent], wanted: type[BrokerEvent], failure: str) -> None:
        if not any(isinstance(event, wanted) for event in events):
            why = "".join(f": {event.error}" for event in events if isinstance(event, Failed))
            raise RoundTripFailed(f"{self.addresses[0]}: {failure}{why}")

    def _expect_everywhere(self, right: Callable[[TopicRouteData | None], bool], failure: str) -> None:
        for address in self.addresses:
            for _ in range(self.connections):
                self._expect(address, right, failure)

    def _expect(self, address: str, right: Callable[[TopicRouteData | None], bool], failure: str) -> None:
        deadline = time.monotonic() + self.within_s
        call_s = min(CALL_S, self.within_s)
        while True:
            last = failure
            try:
                with NameServerClient(address, options=self.options, timeout_s=call_s) as name_server:
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
    """Return every address of the hosts, each once: a headless Service of Kubernetes has one for each pod.

    AddressError for a text that is no address, and for an unknown name."""
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
    """Return the parsed arguments of the given words, else of this process; wrong usage exits."""
    parser = argparse.ArgumentParser(prog="python -m mqns.roundtrip", description=__doc__)
    parser.add_argument("addresses", nargs="+", metavar="HOST:PORT")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="to each address")
    parser.add_argument(
        "--within", type=float, default=WITHIN_S, help="seconds that a change may take to be seen"
    )
    parser.add_argument(
        "--tls", action="store_true", help="speak TLS; no certificate is checked without --ca"
    )
    parser.add_argument("--ca", help="PEM file: the authorities that signed the name servers' certificates")
    parser.add_argument("--certificate", help="PEM file: shown to the name servers")
    parser.add_argument("--key", help="PEM file: its key")
    return parser.parse_args(words)


def main() -> int:
    """Run the round trip; return the exit code."""
    given = arguments()
    try:
        tls = _context(given) if given.tls else None
        signer = credentials_in(os.environ)
        RoundTrip(
            addresses=resolved(given.addresses),
            options=RemotingOptions(tls=tls, hooks=() if signer is None else (signer,)),
            connections=given.connections,
            within_s=given.within,
        ).run(lambda text: print(text, flush=True))
    except (RoundTripFailed, ClientError, OSError) as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return FAILED
    return 0


def _context(given: argparse.Namespace) -> ssl.SSLContext:
    return tls_context(
        trust=given.ca, certificate=given.certificate, key=given.key, auth_server=given.ca is not None
    )


if __name__ == "__main__":
    sys.exit(main())
