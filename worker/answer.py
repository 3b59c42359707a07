"""What a handler makes of a request, before it is a frame."""

from collections.abc import Callable

import msgspec

from registry.keys import Keys
from registry.options import Options
from registry.plans import Act, Plan
from registry.registrar import Registrar
from registry.renewals import Again
from remoting.codes import ResponseCode
from remoting.remoting_command import Command
from worker.peer import Peer


class Depends(msgspec.Struct, frozen=True):
    """What an answer was made of, and so when it stops being true.

    `brokers` are all broker names that were looked at, those left out too; `every` means that any broker's coming and
    going changes it. `listed` are the ids that the answer lists of each broker name."""

    brokers: frozenset[str] = frozenset()
    every: bool = False
    listed: dict[str, frozenset[int]] = {}


class Answer(msgspec.Struct, frozen=True):
    """A response without its header's boilerplate.

    `ext` is {} rather than None where Java's response class has fields and none is set. `event_id` is the last
    entry of the stream that the request wrote: the answer is sent when this worker has followed the stream so far.
    `depends` is None for what must not be kept. `again` is how the same beat or registration has the same answer."""

    code: int = ResponseCode.SUCCESS
    remark: str | None = None
    ext: dict[str, str] | None = None
    body: bytes = b""
    event_id: str = ""
    depends: Depends | None = None
    again: Again | None = None


class Request(msgspec.Struct, frozen=True):
    """A command and what a handler needs beside it.

    `owner` marks the connection in the store, `<worker>/<connection>`; `registers` is called with each member key
    that registers over this connection, before it does; `registrar` is this worker's."""

    command: Command
    peer: Peer
    act: Act
    keys: Keys
    options: Options
    owner: str
    registers: Callable[[str], None]
    registrar: Registrar

    def get(self, name: str) -> str | None:
        """An ext field."""
        return self.command.get(name)

    @property
    def told_as(self) -> int | None:
        """The code under which this is kept if it is an accepted beat, None while beats are not."""
        return self.command.code if self.options.events_heartbeats else None


Handled = Answer | Plan[Answer]
Handler = Callable[[Request], Handled]
