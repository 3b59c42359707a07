"""The member that a request which only its registrant may make is about."""

import msgspec

__all__ = ["Holder"]


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """A living member, as a script saw it at `now_ms` (Unix ms of the Redis clock): the end of its lease then, whether
    it has a connection of a living worker, and the hosts that it registered from."""

    cluster: str
    address: str
    lease_ms: int
    now_ms: int
    connected: bool
    hosts: tuple[str, ...]
