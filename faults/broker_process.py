"""A process of brokers, to be killed and stopped: `python -m faults.broker_process`.

Reads a Spec, one line of input, prints a Note on each line, and ends without a farewell with its input."""

import asyncio
import contextlib
import os
import ssl
import sys
import threading
import time
from functools import partial

import msgspec

from bench.agents import Fleet
from client.broker import AsyncBrokerAgent, BrokerConfig, Event, Failed, Registered, Unregistered
from client.broker.agent import options_for
from client.errors import ClientError
from faults.notes import Kind, Note, Spec
from remoting.codes import RequestCode

STAYS_S, RESTS_S = 3.0, 2.0
"""How long a broker that comes and goes is there, and how long away."""


async def main(spec: Spec) -> None:
    """Until killed."""
    tls = spec.tls.context() if spec.tls else None
    async with asyncio.TaskGroup() as group:
        for config in spec.passing:
            group.create_task(come_and_go(config, tls))
        for config in spec.steady:
            tell(config, "registers")
        async with Fleet(spec.steady, start_within_s=spec.start_within_s, tls=tls, hear=hear):
            await asyncio.Event().wait()


async def come_and_go(config: BrokerConfig, tls: ssl.SSLContext | None) -> None:
    options = msgspec.structs.replace(options_for(config), tls=tls)
    while True:
        tell(config, "registers")
        with contextlib.suppress(ClientError):
            async with AsyncBrokerAgent(config, listener=partial(hear, config), options=options):
                await asyncio.sleep(STAYS_S)
                tell(config, "unregisters")
        await asyncio.sleep(RESTS_S)


def hear(config: BrokerConfig, event: Event) -> None:
    if isinstance(event, Registered):
        tell(config, "registered")
    elif isinstance(event, Unregistered):
        tell(config, "unregistered")
    elif isinstance(event, Failed) and event.code == RequestCode.REGISTER_BROKER:
        tell(config, "failed", f"{type(event.error).__name__}: {event.error}")


def tell(config: BrokerConfig, kind: Kind, why: str = "") -> None:
    note = Note(time.monotonic(), config.broker_name, kind, why)
    sys.stdout.buffer.write(msgspec.json.encode(note) + b"\n")
    sys.stdout.buffer.flush()


def end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    told = msgspec.json.decode(sys.stdin.buffer.readline(), type=Spec)
    threading.Thread(target=end_with_input, daemon=True).start()
    asyncio.run(main(told))
