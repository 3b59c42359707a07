"""Configuration of the name server: 318, 319."""

import logging
from typing import Final

from registry import settings
from registry.options.catalogue import listing, out_of_range
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.properties import PropertiesError, format_properties, parse_properties
from worker.dispatch import failure, handles, written
from worker.logs.rate_limited_log import RateLimitedLog
from worker.reply import Depends, Handled, Reply, Request

log = RateLimitedLog(logging.getLogger(__name__))

BODY_MOST: Final = 16 << 10
LINES_MOST: Final = 500
"""Bytes and lines of a change of options, which is read at once; all options together are 100 lines of 4 KB."""


@handles(RequestCode.UPDATE_NAMESRV_CONFIG)
def update_namesrv_config(request: Request) -> Handled:
    """All or nothing where the black list is concerned; unknown keys and unparsable numbers are ignored."""
    body = request.command.body
    if len(body) > BODY_MOST:
        return failure(f"a body of {len(body)} bytes, of {BODY_MOST} at most")
    if (lines := len(body.splitlines())) > LINES_MOST:
        return failure(f"a body of {lines} lines, of {LINES_MOST} at most")
    try:
        wanted = parse_properties(body.decode("utf-8", "replace"))
    except PropertiesError:
        return failure("string2Properties error")
    taken = settings.accepted(request.options, wanted)
    if unusable := out_of_range(taken):
        log.warning(
            "request 318 of %s set %s, out of range: listed, as Java does, and never in force; set what is in range",
            request.peer.address,
            ", ".join(f"{key}={text}" for key, text in sorted(unusable.items())),
        )
    return written(settings.update(request.keys, taken, request.origin)) if taken else Reply()


@handles(RequestCode.GET_NAMESRV_CONFIG)
def get_namesrv_config(request: Request) -> Reply:
    """Body: `key=value` lines, sorted, with the values in force."""
    return Reply(body=format_properties(dict(listing(request.options))).encode(), depends=Depends())
