"""Subscription data from what a user writes, as Java's FilterAPI builds it."""

from typing import Final

from msgspec import Struct

from client.errors import SubscriptionError
from remoting.heartbeat import SQL92, SUB_ALL, TAG, SubscriptionData
from remoting.java_hash import java_hash

_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's String.trim takes off."""


class Expression(Struct, frozen=True):
    """What of a topic is wanted: tags with `||` between them, `*` for all; with another type, a condition in it."""

    text: str | None = SUB_ALL
    type: str = TAG


def sql92(condition: str) -> Expression:
    """`sql92("a > 1 AND b = 'x'")`: messages with such properties; the broker must have enablePropertyFilter."""
    return Expression(condition, SQL92)


def subscription(topic: str, expression: Expression | str | None, *, version_ms: int) -> SubscriptionData:
    """`"TagA || TagB"` -> tags `("TagA", "TagB")` and their hashes; no text at all is `*`.

    SubscriptionError for tags that are nothing but bars, and for an empty condition."""
    wanted = expression if isinstance(expression, Expression) else Expression(expression)
    if wanted.type != TAG:
        if not wanted.text:
            raise SubscriptionError(f"an empty {wanted.type} condition for topic {topic!r}")
        return SubscriptionData(
            topic=topic, sub_string=wanted.text, expression_type=wanted.type, sub_version=version_ms
        )
    text = wanted.text or SUB_ALL
    tags = () if text == SUB_ALL else _tags(text)
    return SubscriptionData(
        topic=topic,
        sub_string=text,
        tags_set=tags,
        code_set=tuple(dict.fromkeys(map(java_hash, tags))),
        sub_version=version_ms,
    )


def _tags(text: str) -> tuple[str, ...]:
    """Each once, in the order written; empty pieces are left out."""
    pieces = text.split("||")
    if not any(pieces):  # Java's split drops empty pieces at the end, here all
        raise SubscriptionError(f"subString split error: {text!r}")
    return tuple(dict.fromkeys(tag for piece in pieces if (tag := piece.strip(_BLANKS))))
