"""A line of the log about permissions written of a drained broker, which the reply, as Java's, cannot report."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from redis.exceptions import RedisError

from registry.drains import drained_brokers
from registry.errors import StoreUnavailable
from registry.plans import Plan
from worker.logs.rate_limited_log import RateLimitedLog
from worker.reply import Request

NAMED: Final = 5
"""Brokers that a line names."""

log = RateLimitedLog(logging.getLogger(__name__))


def warn_if_drained(request: Request, names: Sequence[str]) -> Plan[None]:
    """Log those of the brokers that are drained; nothing if the store does not say it, since the write is done."""
    with suppress(StoreUnavailable, RedisError):
        drained = yield from drained_brokers(request.keys, names)
        if drained:
            log.warning(
                "request %d of %s wrote permissions of drained brokers: %s (%d): routes show no write permission there "
                "before their drains end; mqns drains lists these, mqns undrain ends one",
                request.command.code,
                request.peer.address,
                ", ".join(repr(broker.name) for broker in drained[:NAMED]),
                len(drained),
            )
