"""A request together with the reader of its response."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from mqns.errors import ResponseError
from mqns.remoting.request import Request
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command

T_co = TypeVar("T_co", covariant=True)


class Call(msgspec.Struct, Generic[T_co], frozen=True):
    """A typed call: `read` returns the result of a response whose code is in `accepts`.

    `read` raises ValueError, as the decoders of rocketmq_remoting do, for an invalid response."""

    request: Request
    read: Callable[[Command], T_co]
    accepts: frozenset[int] = frozenset({ResponseCode.SUCCESS})

    def result(self, address: str, response: Command) -> T_co:
        """Return the result of a response. ResponseError if its code is not accepted or it cannot be read."""
        if response.code not in self.accepts:
            raise ResponseError(address, response.code, response.remark)
        try:
            return self.read(response)
        except ValueError as error:
            raise ResponseError(address, response.code, f"unreadable: {error}") from error
