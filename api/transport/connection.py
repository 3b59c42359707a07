"""One connection of an HTTP worker."""

import socket
import struct
from typing import Any, Final

from api.transport.answer import Answer
from api.transport.arrival import Arrival
from api.transport.limits import Limits, Phase

RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: what was not read is forgotten when the socket is closed, by the system too."""


class Connection:
    """A socket, what has come of a request, what its peer has still to read of an answer.

    Has the attributes that gunicorn's threads expect of a connection; `sock` is where they write."""

    initialized = data_ready = True
    is_http2 = False

    def __init__(self, cfg: Any, peer: socket.socket, client: Any, server: Any, limits: Limits) -> None:
        peer.setblocking(False)
        self.cfg = cfg
        self.peer = peer
        self.client = client
        self.server = server
        self.sock = Answer()
        self.parser = Arrival(cfg, client, limits)
        self.phase = Phase.WHOLE
        self.counted = 0
        """Bytes of `held` that the worker has added up."""
        self.keep = True
        """Whether another request may follow the answer."""
        self.closed = False

    def init(self) -> None:
        """Called by gunicorn in a thread; there is nothing left to do."""

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return self.parser.held + self.sock.held

    def write(self) -> bool:
        """Write what the peer takes of the answer; return whether nothing is left. Raises OSError."""
        return self.sock.write_to(self.peer)

    def close(self) -> None:
        """Close it; with an answer that is not read, reset it."""
        self.closed = True
        if self.sock.held:
            self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.peer.close()
