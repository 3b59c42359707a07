"""What stays the same in the bodies of a broker that registers an unchanged table again and again.

Brokers send their whole table each round. Those of 5.x stamp `mappingDataVersion` with the present, so their
bodies never repeat; without that member, they do."""

import re
from typing import Final

_VERSION = rb'\{(?:"(?:counter|stateVersion|timestamp)":-?[0-9]{1,19}[,}]){1,3}+'
_MAPPING = rb'"mappingDataVersion":' + _VERSION + rb","
_START: Final = re.compile(
    rb'\{"filterServerList":\[[^\]]{0,4096}+\],"topicConfigSerializeWrapper":\{"dataVersion":('
    + _VERSION
    + rb"),"
    rb"(?:" + _MAPPING + rb")?"
)
MAPPING_VERSION: Final = re.compile(_MAPPING)
"""What `split_signature` leaves out. A text that it matches wholly is what is left out wherever it stands there."""


def split_signature(body: bytes) -> tuple[bytes, bytes, memoryview] | None:
    """The data version's JSON, what stands before it, and what stands after it and mappingDataVersion.

    None for a body that does not begin exactly as Java brokers write it."""
    match = _START.match(body)
    if match is None:
        return None
    return match[1], body[: match.start(1)], memoryview(body)[match.end() :]
