"""Who a client says it is."""

import os
import socket
import time
from typing import Final

DEFAULT_INSTANCE: Final = "DEFAULT"
STREAM: Final = "STREAM"
_ANYWHERE: Final = ("192.0.2.1", 9)
"""An address of documentation: asking for the way there sends nothing."""


def client_id(
    ip: str, instance_name: str = DEFAULT_INSTANCE, unit_name: str = "", *, stream: bool = False
) -> str:
    """`10.0.0.5@billing@unit`: brokers and the other members of a group know a client by it.

    An instance name that nobody chose becomes one of its own, `<process>#<nanoseconds>` as in 5.x."""
    if instance_name == DEFAULT_INSTANCE:
        instance_name = f"{os.getpid()}#{time.monotonic_ns()}"
    parts = [ip, instance_name]
    if unit_name.strip():
        parts.append(unit_name)
    if stream:
        parts.append(STREAM)
    return "@".join(parts)


def local_ip() -> str:
    """The address that this machine would go out with; `127.0.0.1` where it cannot."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ANYWHERE)
        except OSError:
            return "127.0.0.1"
        address: str = probe.getsockname()[0]
        return address
