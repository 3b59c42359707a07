"""The id of a client at brokers (RocketMQ ClientConfig.buildMQClientId)."""

import os
import socket
import time
from typing import Final

DEFAULT_INSTANCE: Final = "DEFAULT"
STREAM: Final = "STREAM"
_ROUTED_ADDRESS: Final = ("192.0.2.1", 9)
"""An address reserved for documentation; connecting a UDP socket to it sends nothing."""


def client_id(
    ip: str, instance_name: str = DEFAULT_INSTANCE, unit_name: str = "", *, stream: bool = False
) -> str:
    """Return `10.0.0.5@billing@unit`, by which brokers and the other clients of a group identify a client.

    The default instance name becomes `<process id>#<nanoseconds>`, as in 5.x."""
    if instance_name == DEFAULT_INSTANCE:
        instance_name = f"{os.getpid()}#{time.monotonic_ns()}"
    parts = [ip, instance_name]
    if unit_name.strip():
        parts.append(unit_name)
    if stream:
        parts.append(STREAM)
    return "@".join(parts)


def local_ip() -> str:
    """Return the IPv4 address from which this machine sends; `127.0.0.1` without a route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ROUTED_ADDRESS)
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address
