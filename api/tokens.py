"""Bearer tokens of requests: those of the access file, and those of the store."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from threading import Lock
from time import monotonic, time
from typing import Final

from redis.exceptions import RedisError

from access.first_ends import FirstEnds
from access.live import POLL_S, LivePrincipals, Stored, Take
from access.principals import Principals
from access.proof import BadCredential, Proof
from access.tokens import id_of
from registry.errors import StoreUnavailable

__all__ = ["Tokens"]

FRESH_S: Final = 0.5
"""For how long what the store has of tokens is not read again: a revocation is followed within a second."""
RETRY_S: Final = 1.0
"""For how long a store that did not answer is not asked again."""
SEEN_S: Final = 60.0
"""For how long a token of the store that was good reads on while the store is away."""

Follow = Callable[[Take], object]


class Tokens:
    """The tokens of one process, for threads; `follow` has what the store has of them taken, and what was returned
    revoked there again (`access.live.follow_stored`), None where there is no store. Raises InvalidAccessFile."""

    def __init__(self, access_file: str, count: Callable[[str], None], follow: Follow | None) -> None:
        self._live = LivePrincipals(access_file, count)
        self._follow = follow
        self._lock = Lock()
        self._polled_at = self._read_at = self._failed_at = float("-inf")
        self._seen: dict[str, float] = {}
        self._first_ends = FirstEnds()

    def proof(self, token: str, *, reads: bool) -> Proof:
        """Return what a token proves. `reads`: of a request that changes nothing. Raises BadCredential, and
        StoreUnavailable where only the store knows."""
        principals, is_fresh = self._principals()
        proof = principals.by_token(token, time())
        if proof is None:
            if not is_fresh and id_of(token) is not None:
                raise StoreUnavailable("the store, which may know this token, cannot serve now")
            raise BadCredential("no such token")
        if not is_fresh and not (self._live.knows_revoked and self._live.has_in_file(proof.credential)):
            if not reads or monotonic() - self._seen.get(proof.credential, float("-inf")) > SEEN_S:
                raise StoreUnavailable("the store, which may have revoked this token, cannot serve now")
        elif is_fresh:
            self._seen[proof.credential] = monotonic()
        return proof

    def principals(self) -> Principals:
        """Return all principals, those of the access file and of tokens in the store."""
        return self._principals()[0]

    def first_ends(self) -> Iterator[tuple[str, float]]:
        """Yield when the first key and token end, as far as this process knows: `access.first_ends`."""
        return self._first_ends.read(self._live.principals, time())

    def last_reload_successful(self) -> bool | None:
        """Return whether the access file, as it is now, is in force; None without one."""
        with self._lock:
            self._poll()
            return self._live.last_reload_successful

    def refused(self) -> str | None:
        """Return why the access file, as it is now, is not in force; None while it is."""
        with self._lock:
            self._poll()
            return self._live.refused

    def read_again(self) -> None:
        """Have the store read for the next request, since this process has changed what it has."""
        with self._lock:
            self._read_at = float("-inf")

    def _principals(self) -> tuple[Principals, bool]:
        """Return the principals, and whether they are those of now as far as the store knows."""
        with self._lock:
            self._poll()
            is_fresh = self._follow is None or self._is_fresh(self._follow, monotonic())
            return self._live.principals, is_fresh

    def _poll(self) -> None:
        """Look at the access file, once in POLL_S."""
        now = monotonic()
        if now - self._polled_at >= POLL_S:
            self._polled_at = now
            self._live.poll(time())

    def _is_fresh(self, follow: Follow, now: float) -> bool:
        if now - self._read_at < FRESH_S:
            return True
        if now - self._failed_at < RETRY_S:
            return False
        try:
            follow(self._take)
        except (StoreUnavailable, RedisError):
            self._failed_at = monotonic()
            return False
        self._read_at = monotonic()
        return True

    def _take(self, stored: Stored) -> Mapping[str, str]:
        """Take what the store has; return one of what it lost: by the entry of that workers revoke all again."""
        if self._live.take(stored):
            now = monotonic()
            self._seen = {id: at for id, at in self._seen.items() if now - at <= SEEN_S}
        return dict(islice(self._live.unnoted_with_owners().items(), 1))
