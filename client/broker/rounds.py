"""One call to all name servers at once."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from client.broker.events import Failed
from client.errors import AnswerError, ClientError
from client.name_server.calls import VersionAnswer
from client.wire.call import Call
from client.wire.remoting_client import AsyncRemotingClient
from client.wire.request import Request
from remoting.codes import RequestCode, ResponseCode
from remoting.data_version import DataVersion

T = TypeVar("T")
Outcome = TypeVar("Outcome")


async def ask_all(
    client: AsyncRemotingClient,
    addresses: Sequence[str],
    call: Call[T],
    timeout_s: float,
    outcome: Callable[[str, T], Outcome],
    heard: Callable[[Outcome | Failed], object],
) -> list[Outcome | Failed]:
    """What became of it: `outcome` of each address and its result, or Failed, in the order in which they came.

    `heard` is told of each at once."""
    outcomes: list[Outcome | Failed] = []

    async def ask(address: str) -> None:
        became: Outcome | Failed
        try:
            became = outcome(address, await client.ask(address, call, timeout_s=timeout_s))
        except ClientError as error:
            became = failed(address, call.request, error)
        outcomes.append(became)
        heard(became)

    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(ask(address))
    return outcomes


async def tell_all(
    client: AsyncRemotingClient,
    addresses: Sequence[str],
    request: Request,
    timeout_s: float,
    heard: Callable[[Failed], object],
) -> None:
    """Send it to all, oneway; `heard` is told of those who could not be reached."""

    async def tell(address: str) -> None:
        try:
            await client.oneway(address, request, timeout_s=timeout_s)
        except ClientError as error:
            heard(failed(address, request, error))

    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(tell(address))


def failed(address: str, request: Request, error: ClientError) -> Failed:
    """The event of a call that failed."""
    return Failed(address, RequestCode(request.code), error)


def needs_registration(own: DataVersion, outcomes: Sequence[VersionAnswer | Failed]) -> bool:
    """Whether one of the name servers does, of the outcomes of QUERY_DATA_VERSION.

    One that refuses to tell does not, one that could not be asked or read does."""
    return any(_asks_for_it(own, outcome) for outcome in outcomes)


def _asks_for_it(own: DataVersion, outcome: VersionAnswer | Failed) -> bool:
    if isinstance(outcome, Failed):
        refused = isinstance(outcome.error, AnswerError) and outcome.error.code != ResponseCode.SUCCESS
        return not refused
    return outcome.changed or outcome.data_version not in (None, own)
