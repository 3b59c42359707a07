"""A remoting command, request or response, as a value (RocketMQ RemotingCommand)."""

from enum import IntEnum
from typing import Final

import msgspec

from remoting.language import LanguageCode
from remoting.version import CURRENT

RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2
_LANGUAGE: Final = int(LanguageCode.JAVA)


class SerializeType(IntEnum):
    """How the header of a frame is encoded."""

    JSON = 0
    ROCKETMQ = 1


class Command(msgspec.Struct, frozen=True, gc=False):
    """One request or response.

    `opaque` ties a response to its request; None is a JSON request without one, whose response the server
    numbers itself. `language` is the code of a LanguageCode, or whatever number a peer sent instead. `ext` is
    None when the header has no such member, which only byte-exact comparisons can tell from an empty one."""

    code: int
    opaque: int | None
    flag: int = 0
    version: int = 0
    language: int = 0
    remark: str | None = None
    ext: dict[str, str] | None = None
    body: bytes = b""
    serialize_type: SerializeType = SerializeType.JSON

    @property
    def is_response(self) -> bool:
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Whether this must not be answered, not even with an error."""
        return self.flag & ONEWAY_FLAG != 0

    def get(self, name: str) -> str | None:
        """The ext field of that name."""
        return self.ext.get(name) if self.ext is not None else None

    def reply(
        self, code: int, *, remark: str | None = None, ext: dict[str, str] | None = None, body: bytes = b""
    ) -> "Command":
        """The response to this request, in its encoding; version and language are ours, not an echo."""
        return Command(
            code, self.opaque, RESPONSE_FLAG, CURRENT, _LANGUAGE, remark, ext, body, self.serialize_type
        )
