"""Many watchers of `/v1/watch` in one thread, as Server-Sent Events: what each was sent, and whether it came back."""

import random
import resource
import selectors
import socket
import time
from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["Fleet", "SseWatcher"]

READ_BYTES: Final = 1 << 18
OPENED: Final = b"\r\n\r\n"
OK, UNAVAILABLE = b"200", b"503"
AWAY_S: Final = 0.2
"""Pause before a watcher whose connection was refused tries again."""


class SseWatcher:
    """A reader of one stream of events, which comes back where it was when its connection ends."""

    def __init__(self, path: str, on_event: Callable[["SseWatcher", str, str, bytes], None]) -> None:
        self.path: Final = path
        self.last_id = ""
        self.sock: socket.socket | None = None
        self.is_open = False
        self.due = 0.0
        self.connections = 0
        self.is_refused = False
        self.refused = 0
        """How often the server could not have it then."""
        self._on_event = on_event
        self._retry_s = 1.0
        self._buffer = b""

    def request(self, host: str) -> bytes:
        """Return the request of the next connection."""
        after = f"Last-Event-ID: {self.last_id}\r\n" if self.last_id else ""
        return (
            f"GET {self.path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n{after}\r\n".encode()
        )

    def began(self, sock: socket.socket) -> None:
        """Note that a connection begins."""
        self.sock, self.is_open, self.is_refused, self._buffer = sock, False, False, b""
        self.connections += 1

    def ended(self, now: float) -> None:
        """Note that the connection ended."""
        self.sock = None
        self.due = now + (self._retry_s * random.uniform(0.9, 1.1) if self.is_open else AWAY_S)

    def take(self, data: bytes) -> None:
        """Take what came: chunks, whose frames are left out, since no line of an event looks like one."""
        self._buffer += data
        if not self.is_open:
            head, found, rest = self._buffer.partition(OPENED)
            if not found:
                return
            status = head.split(b" ", 2)[1]
            if status == UNAVAILABLE:
                self.refused += 1
                self.is_refused = True
                return
            if status != OK:
                raise AssertionError(head.decode())
            self.is_open, self._buffer = True, rest
        *events, self._buffer = self._buffer.split(b"\n\n")
        for event in events:
            self._take_event(event)

    def _take_event(self, event: bytes) -> None:
        kind, data = "", b""
        for line in event.split(b"\n"):
            name, _, value = line.partition(b": ")
            if name == b"id":
                self.last_id = value.decode()
            elif name == b"event":
                kind = value.decode()
            elif name == b"data":
                data = value
            elif name == b"retry":
                self._retry_s = int(value) / 1000
        if data:
            self._on_event(self, kind, self.last_id, data)


class Fleet:
    """Watchers of one address, served in turns by `run`."""

    def __init__(self, host: str, port: int, watchers: Iterable[SseWatcher]) -> None:
        self._address = (host, port)
        self.watchers: Final = list(watchers)
        self._selector = selectors.DefaultSelector()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < len(self.watchers) + 500:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, len(self.watchers) + 500), hard))

    @property
    def open(self) -> int:
        """How many have the head of an answer."""
        return sum(watcher.is_open and watcher.sock is not None for watcher in self.watchers)

    def run(self, until: Callable[[], bool], within_s: float) -> bool:
        """Serve until a condition holds; return whether it did in time."""
        end = time.monotonic() + within_s
        next_look = 0.0
        while (now := time.monotonic()) < end:
            if now >= next_look:
                next_look = now + 0.02
                if until():
                    return True
                self._connect_due(now)
            for key, _ in self._selector.select(0.02):
                self._read(key.data)
        return until()

    def close(self) -> None:
        """End all connections."""
        for watcher in self.watchers:
            self._end(watcher)
        self._selector.close()

    def _connect_due(self, now: float, at_once: int = 50) -> None:
        host = f"{self._address[0]}:{self._address[1]}"
        for watcher in self.watchers:
            if watcher.sock is None and watcher.due <= now:
                try:
                    sock = socket.create_connection(self._address, 5)
                    sock.sendall(watcher.request(host))
                except OSError:
                    watcher.ended(now)
                    continue
                sock.setblocking(False)
                watcher.began(sock)
                self._selector.register(sock, selectors.EVENT_READ, watcher)
                at_once -= 1
                if not at_once:
                    return

    def _read(self, watcher: SseWatcher) -> None:
        if watcher.sock is None:
            return
        try:
            data = watcher.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            watcher.take(data)
        if not data or watcher.is_refused:
            self._end(watcher)

    def _end(self, watcher: SseWatcher) -> None:
        if watcher.sock is not None:
            self._selector.unregister(watcher.sock)
            watcher.sock.close()
            watcher.ended(time.monotonic())
