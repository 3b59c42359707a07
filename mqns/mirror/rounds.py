"""What a round of the mirror did."""

import msgspec

from mqns.mirror.target import MirroredMember

__all__ = ["Round", "RoundNotes"]


class Round(msgspec.Struct, frozen=True, rename="camel"):
    """Members that were registered, changed and removed in a round, and those that are found to have registered
    themselves since; how many leases were renewed, routes read, and members are mirrored and are not.

    `reading` names brokers whose topics are not read yet; `sources` says of each name server why it did not answer,
    null if it did; `failures` are what was refused, or why the mirror's own name server could not be reached
    (`target_answered` is false then)."""

    registered: tuple[MirroredMember, ...] = ()
    changed: tuple[MirroredMember, ...] = ()
    removed: tuple[MirroredMember, ...] = ()
    own: tuple[MirroredMember, ...] = ()
    kv: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    sources: dict[str, str | None] = {}
    renewed: int = 0
    routes_read: int = 0
    topics_left_out: int = 0
    mirrored: int = 0
    registered_themselves: int = 0
    target_answered: bool = True

    @property
    def changes(self) -> bool:
        """Whether anything was written but renewals, or was found."""
        return bool(self.registered or self.changed or self.removed or self.own or self.kv)

    @property
    def is_whole(self) -> bool:
        """Whether all name servers answered, and nothing was refused or left for another round."""
        return not (self.failures or self.reading or any(self.sources.values()))


class RoundNotes:
    """A round that goes on."""

    def __init__(self) -> None:
        self.registered: list[MirroredMember] = []
        self.changed: list[MirroredMember] = []
        self.removed: list[MirroredMember] = []
        self.own: list[MirroredMember] = []
        self.kv: list[str] = []
        self.failures: list[str] = []
        self.renewed = 0
        self.target_answered = True

    def done(self) -> Round:
        """Return what was written."""
        return Round(
            registered=tuple(self.registered),
            changed=tuple(self.changed),
            removed=tuple(self.removed),
            own=tuple(self.own),
            kv=tuple(self.kv),
            failures=tuple(dict.fromkeys(self.failures)),
            renewed=self.renewed,
            target_answered=self.target_answered,
        )
