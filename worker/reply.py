"""Requests as handlers get them, and replies before they are frames."""

from collections.abc import Callable

import msgspec

from access.patterns import Patterns
from registry.growth.limits import Limits
from registry.holder import Holder
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.ownership import Claimant
from registry.plans import Origin, Plan
from registry.queue_data.rewrite import Rewrites
from registry.registration.cache import RegistrationCache
from registry.registration.renewals import Renewal
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.remoting_command import Command
from worker.peer import Peer


class Depends(msgspec.Struct, frozen=True):
    """What a reply was made of, and so when it stops being true.

    `brokers` are all broker names that were looked at, those left out too; `every` means that each broker that comes
    or goes changes it. `listed` are the ids that the reply lists of each broker name."""

    brokers: frozenset[str] = frozenset()
    every: bool = False
    listed: dict[str, frozenset[int]] = {}


class Reply(msgspec.Struct, frozen=True):
    """A response without its header's boilerplate.

    `ext` is {} rather than None where Java's response class has fields and none is set. `event_id` is the last
    entry of the stream that the request wrote: the reply is sent when this worker has followed the stream so far.
    `depends` is None for what must not be kept. `renewal` is how the same heartbeat or registration is repeated.
    `outcome` is what came of a registration (`registry.registration.decision`), or "renewed" of an accepted heartbeat;
    `refusal` why a request was refused: the key of the option that limits it, or one of a few words. `denied`: by the
    rules of access. `in_the_way` is the member because of which a request is refused that takes its place."""

    code: int = ResponseCode.SUCCESS
    remark: str | None = None
    ext: dict[str, str] | None = None
    body: bytes = b""
    event_id: str = ""
    depends: Depends | None = None
    renewal: Renewal | None = None
    outcome: str = ""
    refusal: str = ""
    denied: bool = False
    in_the_way: Holder | None = None


class TopicLimits(msgspec.Struct, frozen=True):
    """What the topics of a registration have to match: all patterns of one of these ways. `refuses` notes that they do
    not, and returns whether the request is refused for that."""

    ways: tuple[tuple[Patterns, ...], ...]
    refuses: Callable[[], bool]


class Request(msgspec.Struct, frozen=True):
    """A command and what a handler needs beside it.

    `owner` is the connection's name in the store, `<worker>/<connection>`; `registers` is called with each member key
    that registers over this connection, before it does, and returns whether it is the first time; `refused` is called
    when such a first registration is refused; `registration_cache` and `rewrites` are this worker's; `late` says what
    is late, `started_ms` when the service began (Unix ms of the Redis clock; None where that is not known yet);
    `unreadable` counts a `body` or `crc` that is none; `topics` are the limits of a registration's, None
    where it may have all; `claimant` is the caller as owner of brokers."""

    command: Command
    peer: Peer
    origin: Origin
    keys: Keys
    options: Options
    limits: Limits
    claimant: Claimant
    owner: str
    registers: Callable[[str], bool]
    refused: Callable[[str], None]
    registration_cache: RegistrationCache
    rewrites: Rewrites
    late: Callable[[], str]
    started_ms: Callable[[], int | None]
    unreadable: Callable[[str], None] = lambda _: None
    topics: TopicLimits | None = None

    def get(self, name: str) -> str | None:
        """Return an ext field, or None."""
        return self.command.get(name)

    @property
    def event_code(self) -> int | None:
        """Return the code under which an accepted heartbeat is logged (eventsHeartbeats), None while none is."""
        return self.command.code if self.options.events_heartbeats else None


Handled = Reply | Plan[Reply]
Handler = Callable[[Request], Handled]
