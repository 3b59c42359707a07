"""Where the list of name servers comes from, if it is not fetched from an HTTP endpoint."""

import os
from collections.abc import Mapping
from typing import Final

from client.addresses.syntax import parse_addresses

PROPERTY: Final = "rocketmq.namesrv.addr"
ENVIRONMENT: Final = "NAMESRV_ADDR"


def configured_addresses(
    given: str | None = None,
    properties: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, ...]:
    """The first list there is: the one given, the property's, the environment's; empty if there is none.

    With none, RocketMQ fetches one (client.addresses.endpoint). AddressError for a list that cannot be read."""
    candidates = (given, (properties or {}).get(PROPERTY), environ.get(ENVIRONMENT))
    return next((addresses for text in candidates if text and (addresses := parse_addresses(text))), ())
