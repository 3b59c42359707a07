"""An agent as a program, until a signal."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress

from mqns.broker.agent import AsyncBrokerAgent
from mqns.broker.config import BrokerConfig
from mqns.broker.events import Listener
from mqns.broker.lines import log_event
from mqns.remoting.options import RemotingOptions


async def announce(
    config: BrokerConfig, *, listener: Listener = log_event, options: RemotingOptions | None = None
) -> None:
    """Keep a broker registered until this is cancelled."""
    async with AsyncBrokerAgent(config, listener=listener, options=options) as agent:
        await agent.wait()


def run_agent(
    config: BrokerConfig, *, listener: Listener = log_event, options: RemotingOptions | None = None
) -> None:
    """Keep a broker registered until SIGTERM or SIGINT, then unregister it.

    Raises ConfigError; OSError if the port cannot be opened."""
    asyncio.run(_until_signal(announce(config, listener=listener, options=options)))


async def _until_signal(announced: Coroutine[None, None, None]) -> None:
    announcing = asyncio.create_task(announced)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, announcing.cancel)
    with suppress(asyncio.CancelledError):
        await announcing
