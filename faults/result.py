"""What came of a row, and which promises were broken."""

from collections.abc import Iterator
from typing import Self

import msgspec

from faults.judgement import Figures, Span
from faults.messages import Counted
from faults.row import Promise, Topics


class Result(msgspec.Struct, frozen=True):
    """Of one row. `lost` are the brokers of which no registration was accepted in the period after the fault.

    `seconds` is how long the row took in all; `broken` is empty where everything was as promised."""

    name: str
    title: str
    seconds: float
    broken: tuple[str, ...]
    span: Span | None = None
    figures: Figures | None = None
    counted: Counted | None = None

    @classmethod
    def failed(cls, name: str, title: str, seconds: float, why: str) -> Self:
        """The row could not be run to its end."""
        return cls(name, title, seconds, (why,))


def broken(promise: Promise, figures: Figures, lost: set[str], counted: Counted | None) -> Iterator[str]:
    """Each promise that was not kept, with what was seen instead."""
    if figures.wrong:
        yield f"{len(figures.wrong)} wrong routes, such as {figures.wrong[0]}"
    if lost:
        yield f"{len(lost)} registrations lost: {', '.join(sorted(lost)[:3])}"
    failed, unanswered_s = {
        Topics.NONE: (figures.failed, figures.unanswered_s),
        Topics.CHANGING: (figures.failed_steady, figures.unanswered_steady_s),
        Topics.ALL: (0, figures.unanswered_s),
    }[promise.lookups_fail]
    if failed:
        yield f"{failed} lookups failed"
    if unanswered_s > promise.unanswered_s:
        yield f"{unanswered_s:.1f} s without a right answer"
    if figures.failed_beats and not promise.beats_fail:
        yield f"{figures.failed_beats} registrations failed"
    if figures.last_trouble_s > promise.recovers_s:
        yield f"not recovered for {figures.last_trouble_s:.1f} s"
    if counted and counted.lost:
        yield f"{counted.lost} messages lost"
    if counted and counted.send_errors:
        yield f"{counted.send_errors} sends failed: {counted.last_error}"
