"""The sockets that workers listen on, bound by the supervisor, so that a port stays open while workers are replaced.

They listen from when gunicorn has loaded its workers' code: until then a connection is refused, and a load balancer
that checks by connecting sends none here that would wait for an answer. Until then the system would let another
process bind the same address: `claim` keeps a second mqnamesrv from it.
"""

import errno
import socket
import sys


class PortUnavailable(RuntimeError):
    """An address cannot be listened on; the text has the address and the cause."""


def bind(host: str, port: int, *, send_buffer: int = 0, receive_buffer: int = 0) -> socket.socket:
    """Return a bound TCP socket; the system chooses a port of 0 and buffer sizes of 0 bytes. Raises PortUnavailable."""
    if not 0 <= port < 1 << 16:  # the C library would take its last 16 bits
        raise PortUnavailable(f"cannot listen on {host}:{port}: no such port")
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if send_buffer > 0:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
            if receive_buffer > 0:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise PortUnavailable(
            f"cannot listen on {host}:{port}: {error}; end what listens there, or set another address or port"
        ) from error
    return listener


def port_of(listener: socket.socket) -> int:
    """Return the port of a socket: the given one, or the system's choice."""
    port: int = listener.getsockname()[1]
    return port


def claim(listener: socket.socket) -> socket.socket:
    """Return what keeps other mqnamesrv off this address until it is closed. Raises PortUnavailable.

    A name in the abstract namespace, which is as wide as that of ports and gone with the process (Linux unix(7))."""
    host, port = listener.getsockname()[:2]
    held = socket.socket(socket.AF_UNIX)
    if sys.platform == "linux":
        try:
            held.bind(f"\0mqnamesrv {host}:{port}")
        except OSError as error:
            if error.errno == errno.EADDRINUSE:  # a sandbox may forbid such names
                held.close()
                raise PortUnavailable(
                    f"cannot listen on {host}:{port}: a mqnamesrv that is starting has it; set another port"
                ) from error
    return held


def listens(listener: socket.socket) -> bool:
    """Return whether this socket listens, and not only another on the same address."""
    return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def reachable(host: str) -> str:
    """Return the host under which this machine reaches a listener on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
