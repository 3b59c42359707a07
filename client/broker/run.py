"""An agent as a program: until it is told to end."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress

from client.broker.agent import AsyncBrokerAgent
from client.broker.config import BrokerConfig
from client.broker.events import Listener, log_event
from client.wire.options import RemotingOptions


async def announce(
    config: BrokerConfig, *, listener: Listener = log_event, options: RemotingOptions | None = None
) -> None:
    """Announce a broker until this is cancelled."""
    async with AsyncBrokerAgent(config, listener=listener, options=options) as agent:
        await agent.wait()


def run_agent(
    config: BrokerConfig, *, listener: Listener = log_event, options: RemotingOptions | None = None
) -> None:
    """Announce a broker until SIGTERM or SIGINT comes, and unregister it then.

    ConfigError for a broker that cannot be announced, OSError when it is to listen and cannot."""
    asyncio.run(_until_told_to_end(announce(config, listener=listener, options=options)))


async def _until_told_to_end(announced: Coroutine[None, None, None]) -> None:
    announcing = asyncio.create_task(announced)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, announcing.cancel)
    with suppress(asyncio.CancelledError):
        await announcing
