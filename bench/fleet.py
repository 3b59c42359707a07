"""Many agents in one process at the real schedule of brokers, as a load of soak, fault and agent measurements."""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Self

from msgspec.structs import replace

from mqns.broker import AsyncBrokerAgent, BrokerConfig, BrokerEvent, Failed
from mqns.broker.agent import options_for
from mqns.remoting.remoting_client import AsyncRemotingClient

PERIOD_S = 30.0


class Fleet:
    """Agents that are announced while the block runs; entered when each had its first round.

    `shared`: all over one connection to each name server, else each over its own, as brokers do, with `tls` if given.
    `counts` are their events by kind, `failures` failed requests by request and error; `on_event` gets each event."""

    def __init__(
        self,
        configs: Sequence[BrokerConfig],
        *,
        start_within_s: float = PERIOD_S,
        shared: bool = False,
        tls: ssl.SSLContext | None = None,
        on_event: Callable[[BrokerConfig, BrokerEvent], object] = lambda _, __: None,
    ) -> None:
        self.agents: list[AsyncBrokerAgent] = []
        self.counts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._configs = configs
        self._start_within_s = start_within_s
        self._tls = tls
        self._on_event = on_event
        self._shared = _shared(configs[0]) if shared else None

    async def __aenter__(self) -> Self:
        pause_s = self._start_within_s / max(len(self._configs), 1)
        try:
            async with asyncio.TaskGroup() as group:
                for number, config in enumerate(self._configs):
                    group.create_task(self._start(config, number * pause_s))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Unregister and close all agents."""
        await asyncio.gather(*(agent.close() for agent in self.agents))
        if self._shared is not None:
            await self._shared.close()

    async def _start(self, config: BrokerConfig, after_s: float) -> None:
        await asyncio.sleep(after_s)
        options = replace(options_for(config), tls=self._tls)
        listener = partial(self._note, config)
        agent = AsyncBrokerAgent(config, listener=listener, options=options, client=self._shared)
        self.agents.append(agent)
        await agent.__aenter__()

    def _note(self, config: BrokerConfig, event: BrokerEvent) -> None:
        self._on_event(config, event)
        self.counts[type(event).__name__] += 1
        if isinstance(event, Failed):
            self.failures[f"{event.code.name}: {type(event.error).__name__}"] += 1


def _shared(config: BrokerConfig) -> AsyncRemotingClient:
    """Return one client for all agents: a request that times out must not close the others' connection."""
    options = replace(options_for(config), close_on_timeout=False)
    return AsyncRemotingClient(options, name_servers=config.name_servers)
