"""What tests of the remoting client share."""

import asyncio
from collections.abc import Awaitable, Callable

from mqns.remoting.options import RemotingOptions
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.remoting.request import Request
from rocketmq_remoting.command import Command
from testbed.network import Answer, Network
from testbed.virtual_time import run

A = "127.0.0.1:9876"
B = "127.0.0.2:9876"
C = "127.0.0.3:9876"
ASK = Request(105, {"topic": "TA"})


def silent(_: Command) -> None:
    """Answers nothing."""


def after(seconds: float) -> Answer:
    """Answers, but that late."""

    async def answer(request: Command) -> Command:
        await asyncio.sleep(seconds)
        return request.reply(0)

    return answer


def play(
    scene: Callable[[Network, AsyncRemotingClient], Awaitable[None]],
    options: RemotingOptions | None = None,
    name_servers: tuple[str, ...] = (),
) -> None:
    """Run a scene on a virtual clock; when its client is closed no connection and no task may be left."""

    async def played() -> None:
        network = Network()
        async with AsyncRemotingClient(options, name_servers=name_servers, connect=network.connect) as client:
            await scene(network, client)
        assert network.open_connections == 0, "connections were left open"

    run(played())
