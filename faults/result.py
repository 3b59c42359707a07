"""The result of a row, with the promises that were broken."""

from collections.abc import Iterator
from typing import Self

import msgspec

from faults.access import Counts
from faults.judgement import Figures, Span
from faults.looks import Seen
from faults.messages import Counted
from faults.row import Promise, Topics


class Result(msgspec.Struct, frozen=True):
    """The result of one row; `seconds` is how long it took, `broken` is empty if every promise was kept."""

    name: str
    title: str
    seconds: float
    broken: tuple[str, ...]
    span: Span | None = None
    figures: Figures | None = None
    counted: Counted | None = None
    seen: Seen | None = None
    callers: tuple[Counts, ...] = ()
    """With access enforced."""

    @classmethod
    def failed(cls, name: str, title: str, seconds: float, why: str) -> Self:
        """Return the result of a row that could not be run to its end."""
        return cls(name, title, seconds, (why,))


def broken(
    promise: Promise, figures: Figures, unrepeated: set[str], counted: Counted | None
) -> Iterator[str]:
    """Yield each promise that was not kept, with what was seen instead.

    `unrepeated` are brokers of which no registration was accepted in the period after the fault."""
    if figures.wrong:
        yield f"{len(figures.wrong)} wrong routes, such as {figures.wrong[0]}"
    if unrepeated:
        yield f"{len(unrepeated)} registrations lost: {', '.join(sorted(unrepeated)[:3])}"
    failed, unanswered_s = {
        Topics.NONE: (figures.failed, figures.unanswered_s),
        Topics.CHANGING: (figures.failed_steady, figures.unanswered_steady_s),
        Topics.ALL: (0, figures.unanswered_s),
    }[promise.lookups_fail]
    if failed:
        yield f"{failed} lookups failed"
    if unanswered_s > promise.unanswered_s:
        yield f"{unanswered_s:.1f} s without a right answer"
    if figures.failed_registrations and not promise.registrations_fail:
        yield f"{figures.failed_registrations} registrations failed"
    if figures.last_trouble_s > promise.recovers_s:
        yield f"not recovered for {figures.last_trouble_s:.1f} s"
    if counted and counted.lost:
        yield f"{counted.lost} messages lost"
    if counted and counted.send_errors:
        yield f"{counted.send_errors} sends failed: {counted.last_error}"
