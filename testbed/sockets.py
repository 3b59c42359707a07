"""TCP connections of this machine, as Linux lists them; addresses are `ip:port`."""

from collections.abc import Iterator
from pathlib import Path
from socket import inet_ntoa
from struct import pack

from msgspec import Struct

from testbed.process_tree import open_files

ESTABLISHED = "01"


class Socket(Struct, frozen=True):
    """One end of an open connection. `file` is how its process sees it."""

    local: str
    remote: str
    file: str


def peers(port: int) -> set[str]:
    """Return the remote addresses of the connections that a local port has accepted."""
    return {socket.remote for socket in _open() if socket.local.endswith(f":{port}")}


def connected_from(pid: int, port: int) -> set[str]:
    """Return the local addresses of a process's connections to a port."""
    files = open_files(pid)
    return {socket.local for socket in _open() if socket.remote.endswith(f":{port}") and socket.file in files}


def _open() -> Iterator[Socket]:
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == ESTABLISHED:
                yield Socket(_text(words[1]), _text(words[2]), f"socket:[{words[9]}]")


def _text(address: str) -> str:
    """Return `ip:port`; of an IPv6 address its last 32 bits, which are IPv4's if one socket listens for both."""
    host, _, port = address.partition(":")
    return f"{inet_ntoa(pack('=I', int(host[-8:], 16)))}:{int(port, 16)}"
