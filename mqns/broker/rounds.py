"""One call to all name servers concurrently."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from mqns.broker.events import Failed
from mqns.errors import ClientError, ResponseError
from mqns.name_server.calls import QueryDataVersionResult
from mqns.remoting.call import Call
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.data_version import DataVersion

T = TypeVar("T")
Outcome = TypeVar("Outcome")


async def call_all(
    client: AsyncRemotingClient,
    addresses: Sequence[str],
    call: Call[T],
    timeout_s: float,
    outcome: Callable[[str, T], Outcome],
    report: Callable[[Outcome | Failed], object],
) -> list[Outcome | Failed]:
    """Return `outcome(address, result)` of each name server, or Failed, in the order of the responses.

    `report` is called with each at once."""
    outcomes: list[Outcome | Failed] = []

    async def ask(address: str) -> None:
        result: Outcome | Failed
        try:
            result = outcome(address, await client.call(address, call, timeout_s=timeout_s))
        except ClientError as error:
            result = failed(address, call.request, error)
        outcomes.append(result)
        report(result)

    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(ask(address))
    return outcomes


async def oneway_all(
    client: AsyncRemotingClient,
    addresses: Sequence[str],
    request: Request,
    timeout_s: float,
    report: Callable[[Failed], object],
) -> None:
    """Send a request to all, oneway; `report` is called with each failure."""

    async def send(address: str) -> None:
        try:
            await client.invoke_oneway(address, request, timeout_s=timeout_s)
        except ClientError as error:
            report(failed(address, request, error))

    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(send(address))


def failed(address: str, request: Request, error: ClientError) -> Failed:
    """Return the event of a failed call."""
    return Failed(address, RequestCode(request.code), error)


def needs_registration(own: DataVersion, outcomes: Sequence[QueryDataVersionResult | Failed]) -> bool:
    """Return whether a name server needs a registration, by the outcomes of QUERY_DATA_VERSION.

    One that refuses the query does not; one without a valid response does."""
    return any(_needs_registration(own, outcome) for outcome in outcomes)


def _needs_registration(own: DataVersion, outcome: QueryDataVersionResult | Failed) -> bool:
    if isinstance(outcome, Failed):
        refused = isinstance(outcome.error, ResponseError) and outcome.error.code != ResponseCode.SUCCESS
        return not refused
    return outcome.changed or outcome.data_version not in (None, own)
