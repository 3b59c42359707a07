"""Operations as plans: a generator yields what it wants of Redis, is sent the reply, without a client library.

The two drivers in `registry.drivers` run the same plan over `redis.Redis` and `redis.asyncio.Redis`; a test may
run one with literal replies. A plan raises the errors of `registry.errors`, nothing of redis-py's.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from registry.long_work.limiter import Limiter

Argument: TypeAlias = str | bytes | int
T = TypeVar("T")


class Call(msgspec.Struct, frozen=True):
    """One Redis command; the reply is redis-py's raw one, text decoded."""

    args: tuple[Argument, ...]


class ScriptCall(msgspec.Struct, frozen=True):
    """One script of `lua/`, by file name without its ending. KEYS[1] names the namespace to every script.

    `dry`: it writes nothing, and its last argument and its reply are those of `registry.dry_run`."""

    name: str
    keys: tuple[str, ...]
    args: tuple[Argument, ...] = ()
    dry: bool = False


class Expected(NamedTuple):
    """The reply that an item has had before. Its script need not say it again where its words are the same."""

    words: str
    reply: Any


NOTHING: Final = Expected("", None)
"""Of an item that has had no reply; its script always says one."""


class ScriptItem(msgspec.Struct, frozen=True):
    """One item for a script that takes many: KEYS are `shared` and then each item's `keys`, ARGV each item's `args`,
    and then the words of each item's `expected`, where the script takes them.

    Its reply is the item's. A driver may join the items of one moment into one call; `split` makes the items' replies
    of the items and what the script returned, where that is not a list of them already. It must not fail. `most` items
    are one call's, where they cost more than usual."""

    name: str
    shared: tuple[str, ...]
    keys: tuple[str, ...]
    args: tuple[Argument, ...]
    split: "Split | None" = None
    most: int | None = None
    expected: Expected | None = None


Split: TypeAlias = Callable[[Sequence[ScriptItem], Any], list[Any]]


class Batch(msgspec.Struct, frozen=True):
    """Several requests of which none needs another's reply; the reply is the list of theirs."""

    requests: tuple[Call | ScriptCall, ...]


class Pause(msgspec.Struct, frozen=True):
    """Wait before going on; the reply is None."""

    seconds: float


class Acquire(msgspec.Struct, frozen=True):
    """Wait for a place of the limiter, which the plan has to release; the reply is None."""

    limiter: Limiter


Request: TypeAlias = Call | ScriptCall | ScriptItem | Batch | Pause | Acquire
Plan: TypeAlias = Generator[Request, Any, T]


def call(*args: Argument) -> Call:
    """Return a command: `call("HGET", key, field)`."""
    return Call(args)


def joined(items: Sequence[ScriptItem]) -> ScriptCall:
    """Return one call for items of one script that share their keys."""
    first = items[0]
    keys = [*first.shared, *[key for item in items for key in item.keys]]
    args = [arg for item in items for arg in item.args]
    if first.expected is not None:
        args += [item.expected.words for item in items]  # type: ignore[union-attr]
    return ScriptCall(first.name, tuple(keys), tuple(args))


def replies_to(items: Sequence[ScriptItem], returned: Any) -> list[Any]:
    """Return the reply to each item of a call."""
    split = items[0].split
    return returned if split is None else split(items, returned)


def exceptions(items: Sequence[ScriptItem], returned: Sequence[Any]) -> list[Any]:
    """Return the replies to items of a script that returned `i, reply, …` where one is not as expected; i from 1."""
    replies = [item.expected.reply for item in items]  # type: ignore[union-attr]
    for i, reply in zip(returned[::2], returned[1::2], strict=True):
        replies[i - 1] = reply
    return replies


def ask(request: Request) -> Plan[Any]:
    """Return the reply to one request."""
    return (yield request)


def within(limiter: Limiter, plan: Plan[T]) -> Plan[T]:
    """Return what a plan does, which begins once it has a place of the limiter."""
    yield Acquire(limiter)
    try:
        return (yield from plan)
    finally:
        limiter.release()


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The actor and the request of an operation: what each of its events carries.

    `op` joins the entries of one operation; `actor` is `wire:<ip:port>`, `job:<name>`, `worker:<id>` and so on;
    `peer` is the remote end's `ip:port` where the actor does not say it."""

    op: str
    actor: str
    peer: str | None = None


def as_json(value: object) -> bytes:
    """Return the JSON argument of a script."""
    return msgspec.json.encode(value)


def pairs(flat: list[str]) -> dict[str, str]:
    """Return the table of `[field, value, …]`, as Redis and scripts reply it."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
