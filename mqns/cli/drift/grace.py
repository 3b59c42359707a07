"""Which differences last: a registration arrives at two name servers a moment apart, and is no drift between them."""

from math import ceil

from mqns.cli.drift.look import Look

__all__ = ["Lasting", "looks_in"]


def looks_in(grace_s: float, every_s: float) -> int:
    """Return how many looks, one each `every_s`, a difference has to be seen in to have lasted for `grace_s`."""
    return 1 + ceil(grace_s / every_s)


class Lasting:
    """Keeps in how many looks, one after another, each difference was seen; `looks` is in how many it has to be.

    A look that got no answer says nothing of differences, so it neither counts nor ends a row of looks."""

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self._answered = 0
        self._seen: dict[tuple[str, str], int] = {}

    def of(self, look: Look) -> Look | None:
        """Return the look with the differences that have lasted; None as long as none can have, since looks began."""
        if look.unanswered:
            return look
        self._answered += 1
        keys = [(one.kind, one.subject) for one in look.differences]
        self._seen = {key: self._seen.get(key, 0) + 1 for key in keys}
        if look.differences and self._answered < self._looks:
            return None
        lasting = zip(look.differences, keys, strict=True)
        return Look(tuple(one for one, key in lasting if self._seen[key] >= self._looks))
