"""TCP connections of this machine, as Linux lists them; addresses are `ip:port`."""

import struct
from collections.abc import Iterator
from pathlib import Path
from socket import AF_INET, AF_NETLINK, IPPROTO_TCP, SOCK_RAW, inet_aton, inet_ntoa, socket

from msgspec import Struct

from testbed.process_tree import open_files

ESTABLISHED = "01"
NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST = 1
HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
REQUEST = struct.Struct("=BBBBI" + "2s2s16s16sI8s")
"""inet_diag_req_v2: family, protocol, extensions, padding, states, and an inet_diag_sockid."""
REPLY = struct.Struct("=BBBB" + "2s2s16s16sI8s" + "IIIII")
"""inet_diag_msg: family, state, timer, retransmits, an inet_diag_sockid, and five numbers, the inode last."""


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


def far_end(near: socket) -> str:
    """Return the file that is the other end of an IPv4 connection within this machine, as its process sees it.

    sock_diag(7) looks up one socket. A list of all takes 10 ms on a machine of much memory, so that is read only where
    the kernel has no such lookup, or finds nothing: "" if the list has nothing either."""
    (host, port), (remote_host, remote_port) = near.getpeername(), near.getsockname()
    inode = _inode((host, port), (remote_host, remote_port))
    if inode:
        return f"socket:[{inode}]"
    ends = f"{host}:{port}", f"{remote_host}:{remote_port}"
    return next((one.file for one in _open() if (one.local, one.remote) == ends), "")


def _inode(local: tuple[str, int], remote: tuple[str, int]) -> int:
    """Return the inode of the accepted socket with these addresses, 0 if the kernel knows none."""
    ports = local[1].to_bytes(2, "big"), remote[1].to_bytes(2, "big")
    hosts = inet_aton(local[0]), inet_aton(remote[0])
    request = REQUEST.pack(AF_INET, IPPROTO_TCP, 0, 0, 0xFFFFFFFF, *ports, *hosts, 0, b"\xff" * 8)
    try:
        with socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
            kernel.send(
                HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + request
            )
            reply = kernel.recv(1 << 13)
    except OSError:
        return 0
    if HEADER.unpack_from(reply)[1] != SOCK_DIAG_BY_FAMILY:  # an error: it has none
        return 0
    found = REPLY.unpack_from(reply, HEADER.size)
    return int(found[-1]) if found[5] == ports[1] else 0  # else the listener


def _open() -> Iterator[Socket]:
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == ESTABLISHED:
                yield Socket(_text(words[1]), _text(words[2]), f"socket:[{words[9]}]")


def _text(address: str) -> str:
    """Return `ip:port`; of an IPv6 address its last 32 bits, which are IPv4's if one socket listens for both."""
    host, _, port = address.partition(":")
    return f"{inet_ntoa(struct.pack('=I', int(host[-8:], 16)))}:{int(port, 16)}"
