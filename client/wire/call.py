"""A request together with what its answer means."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from client.errors import AnswerError
from client.wire.request import Request
from remoting.codes import ResponseCode
from remoting.command import Command

T_co = TypeVar("T_co", covariant=True)


class Call(msgspec.Struct, Generic[T_co], frozen=True):
    """`read` gives the result of an answer whose code is one of `accepts`.

    It raises a ValueError, as remoting's decoders do, for what it cannot read."""

    request: Request
    read: Callable[[Command], T_co]
    accepts: frozenset[int] = frozenset({ResponseCode.SUCCESS})

    def result(self, address: str, answer: Command) -> T_co:
        """What the answer of that peer says. AnswerError when it is none that the call accepts, or unreadable."""
        if answer.code not in self.accepts:
            raise AnswerError(address, answer.code, answer.remark)
        try:
            return self.read(answer)
        except ValueError as error:
            raise AnswerError(address, answer.code, f"unreadable: {error}") from error
