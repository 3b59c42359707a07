"""Listening sockets, opened by the supervisor: a port stays ours while the workers behind it come and go."""

import socket

BACKLOG = 1024


class PortUnavailable(RuntimeError):
    """The address cannot be listened on; the text says which and why."""


def listen(
    host: str, port: int, *, backlog: int = BACKLOG, send_buffer: int = 0, receive_buffer: int = 0
) -> socket.socket:
    """A listening TCP socket; port 0 lets the system choose, buffer sizes of 0 bytes leave them to it."""
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
            listener.listen(backlog)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise PortUnavailable(f"cannot listen on {host}:{port}: {error}") from error
    return listener


def port_of(listener: socket.socket) -> int:
    """The port it was given, or the one the system chose."""
    port: int = listener.getsockname()[1]
    return port


def reachable(host: str) -> str:
    """Where we ourselves reach what listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
