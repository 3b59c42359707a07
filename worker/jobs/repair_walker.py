"""Walks over the tables one after the other, in one process of each name server.

Not a job of the queue: a walk takes as long as its pace says, and keeps in memory how far it is, so that nothing is
written to a store whose tables are right. Each scheduler runs this; the one that has the claim walks.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable
from time import perf_counter
from typing import Final, Literal

from redis.exceptions import RedisError

from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.keys import Keys
from registry.members import TIMEOUT_MAX_MS
from registry.options.catalogue import Options
from registry.plans import Origin
from registry.repair.slices import ROWS_PER_S, ClaimLost
from registry.repair.state import Repaired, release
from registry.repair.walk import Walk
from registry.task_times import WALK
from worker.jobs.task_record import TaskRecord
from worker.logs.rate_limited_log import RateLimitedLog

EVERY_S: Final = 25.0
"""From the begin of a walk to that of the next; a long one is followed by the next at once. Below the time of a claim,
so that one process keeps it: it knows which brokers moved during its last walk."""
CLAIMED_AGAIN_S: Final = 5.0
SHOWN: Final = 20  # keys in a line of the log
FAILURES_EVERY_S: Final = 60.0
"""A line about failed walks at most."""

log = RateLimitedLog(logging.getLogger(__name__))


class RepairWalker:
    """Walks, and logs what was repaired; `record` notes each walk, `count` what one repaired."""

    def __init__(
        self,
        options: Options,
        driver: AsyncDriver,
        keys: Keys,
        rows_per_s: float = ROWS_PER_S,
        record: TaskRecord | None = None,
        count: Callable[[Repaired], None] = lambda _: None,
    ) -> None:
        self._options = options
        self._driver = driver
        self._keys = keys
        self._rows_per_s = rows_per_s
        self.name: Final = uuid.uuid4().hex[:12]
        self._moved: set[str] = set()
        self._failures = RateLimitedLog(logging.getLogger(__name__), every_s=FAILURES_EVERY_S)
        self._failed = False
        self._record = record
        self._count = count
        self._walk: Walk | None = None
        self._last: Walk | None = None

    @property
    def has_claim(self) -> bool:
        """Whether this process is the one that walks."""
        return self._walk is not None and self._walk.claimed

    async def run(self) -> None:
        """Walk until cancelled."""
        clock: Callable[[], float] = asyncio.get_running_loop().time
        while True:
            began_at = clock()
            walked = await self.walk()
            await asyncio.sleep(max(began_at + EVERY_S - clock(), 0.0) if walked else CLAIMED_AGAIN_S)

    async def walk(self) -> bool:
        """Walk once; False when another process does, or the store does not serve it."""
        began_s = perf_counter()
        walk = Walk(
            self._keys,
            Origin(f"repair-{uuid.uuid4().hex[:12]}", "job:repair"),
            self.name,
            timeout_ms=min(max(self._options.broker_timeout_millis, 1), TIMEOUT_MAX_MS),
            moved=self._moved,
            rows_per_s=self._rows_per_s,
        )
        self._last = walk
        if self._walk is None:
            self._walk = walk
        try:
            await self._driver.run(walk.run())
        except ClaimLost:
            self._walk = None
            self._served()
            return False
        except StoreUnavailable as error:
            return self._missed(
                "tables cannot be compared: %s; the walk begins again in %g s", error, CLAIMED_AGAIN_S
            )
        except RedisError as error:
            return self._missed(
                "tables cannot be compared: %s; if that stays, compare the rights of the user with docs/redis.md",
                error,
            )
        finally:
            self._report(walk)
            self._count(walk.repaired)
        self._served()
        self._moved, self._walk = walk.moved, walk
        if self._record is not None:
            self._record.ran(WALK, int(EVERY_S), perf_counter() - began_s, succeeded=True)
        return True

    async def release(self) -> None:
        """Release the claim, for another process to walk. Raises RedisError and StoreUnavailable.

        `run` was cancelled, but a walk under way is a plan that goes on: it ends soon, and claims nothing."""
        if self._last is not None:
            self._last.stop()
        await self._driver.run(release(self._keys, self.name))

    def _missed(self, message: str, *args: object) -> Literal[False]:
        self._failed, self._walk = True, None
        self._failures.warning(message, *args)
        return False

    def _served(self) -> None:
        """Note that this process walked, or the one that has the claim."""
        if self._failed:
            log.warning("tables are compared again")
        self._failed = False

    @staticmethod
    def _report(walk: Walk) -> None:
        repaired, wrong = walk.repaired, walk.wrong_keys
        if repaired.total:
            log.warning(
                "tables were damaged, and %d rows were repaired (brokers %d, members %d, topics %d, static topics %d, "
                "keys of a wrong type, whose values are lost, %d%s%s%s); find out what deleted or changed keys of the "
                "store, see docs/runbook.md",
                repaired.total,
                repaired.brokers,
                repaired.members,
                repaired.topics,
                repaired.mappings,
                repaired.keys,
                ": " if wrong else "",
                ", ".join(repr(key) for key in wrong[:SHOWN]),
                ", …" if len(wrong) > SHOWN else "",
            )
