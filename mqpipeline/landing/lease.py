"""Who lands: a lease in Redis that names the process. A second landing waits for the lease of one that is dead, and is
refused while the first one renews its own.

It refuses early and by name. That no entry is lost or there twice is the log's doing, with a lease or without: a batch
that does not follow on its last one is refused."""

import logging
import secrets
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from textwrap import shorten
from typing import Final

import msgspec
from redis.exceptions import NoPermissionError, RedisError

from mqpipeline.lake.log import OtherWriter, this_process
from mqpipeline.texts import one_line
from mqpipeline.times import format_time
from pyspark_redis_stream.connection import AWAY, Store

LEASE_MS: Final = 15_000
RENEW_S: Final = 5.0
LOOK_AGAIN_S: Final = 1.0
CLOSE_S: Final = 2.0
"""For a renewal under way, to which a store that hangs does not reply."""
NO_END: Final = -1
"""What PTTL says of a key without one, which another program has set."""

logger = logging.getLogger(__name__)


class Holder(msgspec.Struct, frozen=True):
    """The value of a lease: a process as commits name it, since when by its clock, and a random number."""

    by: str
    since_ms: int
    id: str


class Leases:
    """The leases of the namespaces that this process lands under a consumer's name; a thread renews them until `close`,
    which closes the store's connections too."""

    def __init__(self, store: Store, consumer: str) -> None:
        self._store = store
        self._consumer = consumer
        holder = Holder(this_process(), time.time_ns() // 1_000_000, secrets.token_hex(8))
        self._mine = msgspec.json.encode(holder)
        self._keys: frozenset[str] = frozenset()
        self._closing = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="leases", daemon=True)
        self._permitted = True

    def require(self, namespaces: Iterable[str]) -> None:
        """Take the leases that this process has not yet. Raises OtherWriter if another process renews one of them."""
        for namespace in namespaces:
            if self._permitted:
                try:
                    self._take(namespace)
                except NoPermissionError as error:
                    self._do_without(namespace, error)

    def close(self) -> None:
        """Give all back; those in a store that is away end by themselves."""
        self._closing.set()
        if self._keys:
            self._renewer.join(CLOSE_S)
        with suppress(RedisError, *AWAY):
            for key in self._keys:
                if self._is_mine(key):
                    self._store.client.execute_command("UNLINK", key)
        self._store.close()

    def _take(self, namespace: str) -> None:
        """Take one, at once or when its holder has not renewed it until it ends."""
        key = lease_key(namespace, self._consumer)
        if self._store.call("GET", key) == self._mine:
            return
        left_ms, waiting = LEASE_MS, False
        while not self._store.call("SET", key, self._mine, "NX", "PX", LEASE_MS):
            if self._store.call("GET", key) == self._mine:
                break  # the reply to this process was lost
            before_ms, left_ms = left_ms, self._left_ms(key)
            if left_ms > before_ms or left_ms == NO_END:
                raise self._refusal(namespace, key)
            if not waiting:
                logger.warning("%s; waiting for it to end, or to be renewed", self._held(namespace, key))
                waiting = True
            time.sleep(min(LOOK_AGAIN_S, max(0, left_ms) / 1000))
        self._renew_too(key)

    def _left_ms(self, key: str) -> int:
        """Return how long another's lease goes on. Where Redis's clock went back since it was renewed, that is longer
        than any lease lasts, and is cut: a process that lands renews it all the same."""
        left_ms: int = self._store.call("PTTL", key)
        if left_ms > LEASE_MS:
            self._store.call("PEXPIRE", key, LEASE_MS, "LT")
        return min(left_ms, LEASE_MS)

    def _renew_too(self, key: str) -> None:
        first = not self._keys
        self._keys |= {key}
        if first:
            self._renewer.start()

    def _renew(self) -> None:
        """If the store is away or a lease another's, `require` and the log have the last word."""
        while not self._closing.wait(RENEW_S):
            for key in self._keys:
                with suppress(RedisError, *AWAY):
                    if not self._closing.is_set() and self._is_mine(key):
                        self._store.client.execute_command("PEXPIRE", key, LEASE_MS)

    def _is_mine(self, key: str) -> bool:
        return bool(self._store.client.execute_command("GET", key) == self._mine)

    def _held(self, namespace: str, key: str) -> str:
        try:
            holder = msgspec.json.decode(self._store.call("GET", key) or b"", type=Holder)
            return f"{holder.by} lands namespace {namespace} since {format_time(holder.since_ms)}"
        except (msgspec.DecodeError, ValueError):  # not of this program
            return f"another process lands namespace {namespace} ({key})"

    def _refusal(self, namespace: str, key: str) -> OtherWriter:
        return OtherWriter(
            f"{self._held(namespace, key)}, as {self._consumer}. End it, or leave the landing to it: `mqpipeline "
            "report` makes reports beside it. If it lands into another warehouse, give one of them another name "
            "(MQNS_PIPELINE_CONSUMER)"
        )

    def _do_without(self, namespace: str, error: NoPermissionError) -> None:
        self._permitted = False
        logger.warning(
            "no lease names this process as the one that lands namespace %s: %s. A second landing is still refused "
            "by the table's log; docs/redis.md has the rights of the pipeline's user",
            namespace,
            shorten(one_line(error), 200),
        )


def lease_key(namespace: str, consumer: str) -> str:
    """Return the key of a lease."""
    return f"ns:{{{namespace}}}:events:landing:{consumer}"
