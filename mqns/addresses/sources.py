"""The configured list of name servers."""

import os
from collections.abc import Mapping
from typing import Final

from mqns.addresses.syntax import parse_addresses

PROPERTY: Final = "rocketmq.namesrv.addr"
ENVIRONMENT: Final = "NAMESRV_ADDR"


def configured_addresses(
    given: str | None = None,
    properties: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, ...]:
    """Return the first list of: the one given, the property's, the environment's; empty without any.

    Without any, RocketMQ fetches a list (mqns.addresses.endpoint). Raises AddressError."""
    candidates = (given, (properties or {}).get(PROPERTY), environ.get(ENVIRONMENT))
    return next((addresses for text in candidates if text and (addresses := parse_addresses(text))), ())
