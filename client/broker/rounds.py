"""One request to all name servers at once, and what their answers mean."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from client.broker.events import Failed, Registered
from client.errors import AnswerError, RemotingError
from client.wire.remoting_client import RemotingClient
from client.wire.request import Request
from remoting.codes import RequestCode, ResponseCode
from remoting.command import Command
from remoting.data_version import DataVersion, decode_data_version
from remoting.errors import BodyError
from remoting.kv_table import decode_kv_table

T = TypeVar("T")
Outcome = TypeVar("Outcome")


async def ask_all(
    client: RemotingClient,
    addresses: Sequence[str],
    request: Request,
    timeout_s: float,
    read: Callable[[str, Command], T],
    heard: Callable[[T | Failed], object],
) -> list[T | Failed]:
    """What each answer was read as, in the order in which they came; `heard` is told at once.

    Whoever does not answer in time, or cannot be reached or read, has Failed."""
    outcomes: list[T | Failed] = []

    async def ask(address: str) -> None:
        outcome: T | Failed
        try:
            outcome = read(address, await client.call(address, request, timeout_s=timeout_s))
        except (RemotingError, AnswerError, BodyError) as error:
            outcome = Failed(address, RequestCode(request.code), error)
        outcomes.append(outcome)
        heard(outcome)

    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(ask(address))
    return outcomes


async def tell_all(
    client: RemotingClient,
    addresses: Sequence[str],
    request: Request,
    timeout_s: float,
    heard: Callable[[Failed], object],
) -> None:
    """Send it to all, oneway; `heard` is told of those who could not be reached."""

    async def tell(address: str) -> None:
        try:
            await client.oneway(address, request, timeout_s=timeout_s)
        except RemotingError as error:
            heard(Failed(address, RequestCode(request.code), error))

    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(tell(address))


def accepted(address: str, answer: Command) -> Command:
    """The answer; AnswerError when its code says that it is a refusal."""
    if answer.code != ResponseCode.SUCCESS:
        raise AnswerError(address, answer.code, answer.remark)
    return answer


def read_registered(address: str, answer: Command) -> Registered:
    """What a name server says to a registration. AnswerError, BodyError."""
    accepted(address, answer)
    order = tuple(decode_kv_table(answer.body).table) if answer.body else None
    return Registered(address, answer.get("masterAddr"), answer.get("haServerAddr"), order)


def read_changed(own: DataVersion) -> Callable[[str, Command], bool]:
    """Of an answer to QUERY_DATA_VERSION, whether that name server needs a registration. BodyError.

    One that refuses to tell does not; who has no version of this broker says changed=true."""

    def read(_: str, answer: Command) -> bool:
        if answer.code != ResponseCode.SUCCESS:
            return False
        changed = (answer.get("changed") or "true").lower() == "true"
        return changed or (bool(answer.body) and decode_data_version(answer.body) != own)

    return read


def needs_registration(outcomes: Sequence[bool | Failed]) -> bool:
    """Whether one of them does, or one did not answer."""
    return any(outcome is not False for outcome in outcomes)
