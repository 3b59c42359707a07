"""How often an actor, or an address without one, may ask over HTTP (httpReadsPerSecond, httpWritesPerSecond).

Reads, dry runs, and requests for no path here, are counted by each HTTP worker in its memory, writes of all workers
in the store. Where the store does not
count, writes are let through: rates bound load, and are no access control."""

import logging
from http import HTTPStatus
from typing import Final

from flask import Flask, request
from redis.exceptions import RedisError

from api.caller import SESSION, proof_in
from api.console.blueprint import NAME as CONSOLE
from api.counters import COUNTERS
from api.dry_run import dry_run
from api.methods import SAFE
from api.name_server import name_server, origin
from api.probes import POLLED, PROBES
from api.problems import Problem
from registry.errors import StoreUnavailable
from registry.options.catalogue import Options
from registry.options.networks import link_of
from registry.rate import Rate, RateMeter, acquire_write
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["install"]

READ_SECONDS_AT_ONCE: Final = 2
"""A page of a console asks for many things at once."""

log = RateLimitedLog(logging.getLogger(__name__))


def install(app: Flask, options: Options) -> None:
    """Have an application refuse what goes beyond the limits of its options; probes and polls of clients excepted."""
    reads, writes = options.http_reads_per_second, options.http_writes_per_second
    meter = RateMeter(Rate(reads, reads * READ_SECONDS_AT_ONCE)) if reads else None
    write_rate = Rate(writes, writes) if writes else None

    @app.before_request
    def refuse_too_many() -> None:
        if request.path in PROBES or request.blueprint == POLLED:
            return
        if _is_read() or request.routing_exception is not None or dry_run() is not None:
            if meter is not None and not meter.admits(_caller()):
                _refuse("httpReadsPerSecond", reads)
        elif write_rate is not None and not _admits_write(write_rate):
            _refuse("httpWritesPerSecond", writes)


def _is_read() -> bool:
    """Return whether a request changes nothing by itself: a form of the console has the API change it, which counts."""
    return request.method in SAFE or request.blueprint == CONSOLE


def _caller() -> str:
    """Return the principal of a token, else the session of a page of the console, else the user that a trusted proxy
    names, which is no address (`api.trusted_proxies`), else the address."""
    if (proof := proof_in(request.environ)) is not None:
        return proof.actor
    if (session := request.environ.get(SESSION)) is not None:
        return f"session:{session}"
    return request.environ.get("REMOTE_USER") or link_of(request.environ.get("REMOTE_ADDR", ""))


def _admits_write(rate: Rate) -> bool:
    server = name_server()
    try:
        return server.run_probe(acquire_write(server.keys, _caller(), rate, origin()))
    except (StoreUnavailable, RedisError) as error:
        log.warning(
            "writes over HTTP are not limited, since the store did not count one: %s; see docs/redis.md",
            error,
        )
        return True


def _refuse(option: str, per_second: int) -> None:
    COUNTERS.limited(option)
    caller = _caller()
    log.warning(
        "%s was refused %s %a, over its requests a second; raise %s if it is no flood",
        caller,
        request.method,
        request.path,
        option,
        kind=option,
    )
    detail = f"{caller} asks more than {per_second} times a second; ask again in a second, or raise {option}"
    raise Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail)
