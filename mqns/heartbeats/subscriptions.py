"""SubscriptionData of an expression, as Java's FilterAPI builds it."""

from typing import Final

from msgspec import Struct

from mqns.errors import SubscriptionError
from rocketmq_remoting.heartbeat import SQL92, SUB_ALL, TAG, SubscriptionData
from rocketmq_remoting.java_hash import java_hash

_BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's String.trim removes."""


class Expression(Struct, frozen=True):
    """A subscription expression: tags separated by `||`, or `*`; for another type, a condition of that type."""

    text: str | None = SUB_ALL
    type: str = TAG


def sql92(condition: str) -> Expression:
    """Return `a > 1 AND b = 'x'` as an expression over message properties; the broker needs enablePropertyFilter."""
    return Expression(condition, SQL92)


def subscription(topic: str, expression: Expression | str | None, *, version_ms: int) -> SubscriptionData:
    """Return the subscription data: for `"TagA || TagB"` tags `("TagA", "TagB")` and their hashes; no text is `*`.

    SubscriptionError for bars without tags, and for an empty condition."""
    parsed = expression if isinstance(expression, Expression) else Expression(expression)
    if parsed.type != TAG:
        if not parsed.text:
            raise SubscriptionError(f"an empty {parsed.type} condition for topic {topic!r}")
        return SubscriptionData(
            topic=topic, sub_string=parsed.text, expression_type=parsed.type, sub_version=version_ms
        )
    text = parsed.text or SUB_ALL
    tags = () if text == SUB_ALL else _tags(text)
    return SubscriptionData(
        topic=topic,
        sub_string=text,
        tags_set=tags,
        code_set=tuple(dict.fromkeys(map(java_hash, tags))),
        sub_version=version_ms,
    )


def _tags(text: str) -> tuple[str, ...]:
    """Return the tags, each once, in the order written, without empty ones."""
    parts = text.split("||")
    if not any(parts):  # Java's split drops empty parts at the end, here all
        raise SubscriptionError(f"subString split error: {text!r}")
    return tuple(dict.fromkeys(tag for part in parts if (tag := part.strip(_BLANKS))))
