"""An agent as a program, until a signal."""

import asyncio

from mqns.broker.agent import AsyncBrokerAgent
from mqns.broker.config import BrokerConfig
from mqns.broker.events import Listener
from mqns.broker.lines import log_event
from mqns.remoting.options import RemotingOptions
from mqns.tasks import until_signal


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
    asyncio.run(until_signal(announce(config, listener=listener, options=options)))
