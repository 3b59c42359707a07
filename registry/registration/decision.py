"""What `lua/register.lua` replies: a decision, or how a registration ended.

`lua/reregister_topics.lua` and `lua/claim_epoch.lua` reply with some of the same.
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from registry.holder import Holder
from rocketmq_remoting.typed import converted

Outcome = Literal["new", "changed", "unchanged", "conflict"]
"""What came of a registration: the member entered, or an entry was written, or none; or another has its id."""


class _Reply(msgspec.Struct, frozen=True, array_like=True):
    pass


class Decision(_Reply, frozen=True, tag="go"):
    """What a registration will change, decided and not yet written.

    `token` stands for the state that the decision rests on. `epoch` is "" for a broker that will get a new one: the
    registration is its `first`. `every`: topics that are stored count as changed too, not only those that are not;
    `writes`: the member writes the topics of its group; `strips`: it does so without their write bit; `same`: the
    tables are what its body says."""

    token: str
    epoch: str
    generation: int
    first: bool
    every: bool
    writes: bool
    strips: bool
    same: bool

    @property
    def at(self) -> str:
        """The broker's state, and whether and how this member's topics are stored in it."""
        return f"{self.epoch}:{self.generation}:{self.writes:d}{self.strips:d}"

    def done(self, epoch: str, generation: int) -> "Decision":
        """Return the decision on the state that the registration left; it counts for a new data version."""
        return replace(self, epoch=epoch, generation=generation, first=False, every=True)


class Done(_Reply, frozen=True, tag="done"):
    """The registration is written. `master` is (address, HA address), both "" unless a slave's master lives;
    `deferred` names brokers with a pending clean-up. `entered`: the member was not there, or another had its id."""

    event_id: str
    epoch: str
    generation: int
    master: tuple[str, str]
    order_table: list[str]
    deferred: tuple[str, ...] = ()
    entered: bool = False

    @property
    def outcome(self) -> Outcome:
        """Return what came of the registration."""
        if self.entered:
            return "new"
        return "changed" if self.event_id else "unchanged"


class Refused(_Reply, frozen=True, tag="refused"):
    """The state version is lower than that of the member which has this broker id."""

    event_id: str
    order_table: list[str]


class Owned(_Reply, frozen=True, tag="owned"):
    """The registration is for the registrant of a living member only."""

    holder: Holder


class Own(_Reply, frozen=True, tag="own"):
    """A mirror's registration is of what a living member registered itself, or that of another mirror, whose name
    servers `mirrored` has."""

    cluster: str
    address: str
    mirrored: str


class Conflict(_Reply, frozen=True, tag="conflict"):
    """Another living member has what the registration would take; `cause` is that of its event."""

    cause: str
    holder: Holder


class SingleTopic(_Reply, frozen=True, tag="single"):
    """RocketMQ 5.x refuses a first registration with one topic only."""


class Full(_Reply, frozen=True, tag="full"):
    """The registration would grow beyond the limit that this option sets; `what` reached it, of a percentage."""

    option: str
    what: str = ""


class Pending(_Reply, frozen=True, tag="pending"):
    """Another registration has claimed the broker name."""


class Again(_Reply, frozen=True, tag="again"):
    """The state has changed meanwhile, maybe by the script itself: decide again. `event_id` as of `Done`."""

    event_id: str = ""
    deferred: tuple[str, ...] = ()


class ClaimLost(_Reply, frozen=True, tag="lost"):
    """The claim ran out before the table was written: decide again."""


class Claimed(_Reply, frozen=True, tag="claimed"):
    """The broker name is claimed for a table that takes several scripts, which gets this epoch.

    `leftovers`: rows of an earlier epoch are still stored."""

    epoch: str
    leftovers: bool


class Differs(_Reply, frozen=True, tag="differs"):
    """The registration is not what `lua/reregister_topics.lua` can write."""


End: TypeAlias = Done | Refused | Owned | Own | Conflict | SingleTopic | Full | Pending | Again | ClaimLost
"""How one try of a registration ended."""


def _by_tag(*kinds: type[_Reply]) -> dict[str, type[Any]]:
    """A union of them would cost five times as much to read."""
    return {str(kind.__struct_config__.tag): kind for kind in kinds}


_REGISTER: Final = _by_tag(
    Decision, Done, Refused, Owned, Own, Conflict, SingleTopic, Full, Pending, Again, ClaimLost
)
_REREGISTER: Final = _by_tag(Done, Differs, Full)
_CLAIM: Final = _by_tag(Claimed, Pending, Again, Full)


def register_reply(reply: list[Any]) -> Decision | End:
    """Return what lua/register.lua replied."""
    return _parsed(reply, _REGISTER)  # type: ignore[no-any-return]


def reregister_reply(reply: list[Any]) -> Done | Differs | Full:
    """Return what lua/reregister_topics.lua replied."""
    return _parsed(reply, _REREGISTER)  # type: ignore[no-any-return]


def claim_reply(reply: list[Any]) -> Claimed | Pending | Again | Full:
    """Return what lua/claim_epoch.lua replied."""
    return _parsed(reply, _CLAIM)  # type: ignore[no-any-return]


def _parsed(reply: list[Any], kinds: dict[str, type[Any]]) -> Any:
    tag, *_ = reply
    return converted(reply, kinds[tag], strict=False)
