"""A process of brokers, to be killed and stopped: `python -m faults.broker_process`.

Reads a Spec, one line of input, prints a Note on each line, and exits at the end of its input without unregistering."""

import asyncio
import contextlib
import os
import ssl
import sys
import threading
import time
from functools import partial

import msgspec

from bench.fleet import Fleet
from faults.notes import Kind, Note, Spec
from mqns.broker import AsyncBrokerAgent, BrokerConfig, BrokerEvent, Failed, Registered, Unregistered
from mqns.broker.agent import options_for
from mqns.errors import ClientError
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.typed import decoded

STAYS_S, RESTS_S = 3.0, 2.0
"""How long a broker that comes and goes is registered, and how long not."""


async def main(spec: Spec) -> None:
    """Run the brokers until the process is killed."""
    tls = spec.tls.context() if spec.tls else None
    async with asyncio.TaskGroup() as group:
        for config in spec.passing:
            group.create_task(come_and_go(config, tls))
        for config in spec.steady:
            write_note(config, "registers")
        async with Fleet(spec.steady, start_within_s=spec.start_within_s, tls=tls, on_event=note_event):
            await asyncio.Event().wait()


async def come_and_go(config: BrokerConfig, tls: ssl.SSLContext | None) -> None:
    """Register and unregister a broker again and again."""
    options = msgspec.structs.replace(options_for(config), tls=tls)
    while True:
        write_note(config, "registers")
        with contextlib.suppress(ClientError):
            async with AsyncBrokerAgent(config, listener=partial(note_event, config), options=options):
                await asyncio.sleep(STAYS_S)
                write_note(config, "unregisters")
        await asyncio.sleep(RESTS_S)


def note_event(config: BrokerConfig, event: BrokerEvent) -> None:
    if isinstance(event, Registered):
        write_note(config, "registered")
    elif isinstance(event, Unregistered):
        write_note(config, "unregistered")
    elif isinstance(event, Failed) and event.code == RequestCode.REGISTER_BROKER:
        write_note(config, "failed", f"{type(event.error).__name__}: {event.error}")


def write_note(config: BrokerConfig, kind: Kind, why: str = "") -> None:
    line = msgspec.json.encode(Note(time.monotonic(), config.broker_name, kind, why))
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    spec = decoded(sys.stdin.buffer.readline(), Spec)
    threading.Thread(target=end_with_input, daemon=True).start()
    asyncio.run(main(spec))
