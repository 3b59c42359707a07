"""docs/faults.md: what was run on what, a line for each row, and what was broken."""

import os
import platform
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Final

from bench.report import processor, table_line
from faults.access import AGAIN_S, RULES
from faults.callers import Outcome
from faults.fleet import PASSING, PERIOD_MS
from faults.looks import LINES, WITHIN_S, Seen, When
from faults.lookups import CONNECTIONS, PER_S
from faults.messages import PER_SECOND, VERSION
from faults.places import WORKERS
from faults.programs import versions
from faults.result import Result
from faults.trial import BROKERS, REPEATED_WITHIN_S, STEADY_S

HEADINGS = (
    "row",
    "fault",
    "lookups",
    "failed",
    "longest without a right answer",
    "registrations",
    "failed",
    "messages",
    "lost",
    "send errors",
    "all right again",
    "promises",
)
OF_CALLERS: Final = (
    "Rows that end in `-enforced` are those of the store once more: TLS alone, brokers and lookups of the load "
    "with certificates, signed Java clients, `ownershipGuard` ([access](access.md)). Beside the load each of "
    "these asks once a second: for a route, a key and a certificate; `whoami`, over HTTP, a token of the "
    "access file, one of the store that is shown again and again, and new ones of the store that are shown once "
    "each; for a change, a token of the store; and a key and a token of the file that are revoked, and ones that "
    "are not known. These four may never be let in, the others never turned away, but for tokens of a store that "
    "came back empty, which has none any more. While no process reaches the store, the key, the certificate, the "
    "token of the file and the one that was shown before have to be let in; the new token and the change get 503. "
    "A remoting worker that begins meanwhile does not know what is revoked, and answers keys and certificates "
    f"code 1, which lets none in and turns none away (`redis-stop-worker-enforced`). {AGAIN_S:.0f} s after all "
    "else has to be right again, all have to be answered as before."
)
SHOWN = 5
LIBRARIES = ("redis", "gunicorn", "rq", "uvloop")


def heading() -> list[str]:
    return [table_line(HEADINGS), "|" + "---|" * len(HEADINGS)]


def caller_heading() -> list[str]:
    columns = ("row", *RULES, "as before")
    return [table_line(columns), "|" + "---|" * len(columns)]


def caller_line(result: Result) -> str:
    """Return a row of the table of callers: counts of each outcome, and when all were answered as before."""
    cells = [
        " / ".join(str(of.outcomes.get(outcome.value, 0)) for outcome in Outcome) for of in result.callers
    ]
    return table_line((f"`{result.name}`", *cells, f"{max(of.again_s for of in result.callers):.1f} s"))


def line(result: Result) -> str:
    """Return a row of the table, with the cause if it could not be run."""
    figures, counted, span = result.figures, result.counted, result.span
    verdict = f"**broken**: {'; '.join(result.broken)}" if result.broken else "kept"
    if figures is None or span is None:
        return table_line((f"`{result.name}`", result.title, *("",) * 9, verdict))
    recovered = max(figures.last_trouble_s, 0.0)
    return table_line(
        (
            f"`{result.name}`",
            result.title,
            f"{figures.lookups:,}",
            f"{figures.failed:,}",
            f"{figures.unanswered_s * 1000:,.0f} ms",
            f"{figures.registrations:,}",
            f"{figures.failed_registrations:,}",
            f"{counted.sent:,}" if counted else "",
            f"{counted.lost:,}" if counted else "",
            f"{counted.send_errors:,}" if counted else "",
            _recovered(recovered, span.end - span.begin),
            verdict,
        )
    )


def _recovered(after_end_s: float, lasted_s: float) -> str:
    """Return the seconds after the fault's end, and after its beginning."""
    return f"{after_end_s:.1f} s; {after_end_s + lasted_s:.1f} s"


def page(results: Sequence[Result], of: int) -> str:
    """Return docs/faults.md for these results of `of` rows."""
    return "\n".join(_lines(results, of)) + "\n"


def _lines(results: Sequence[Result], of: int) -> Iterator[str]:
    as_promised = sum(not result.broken for result in results)
    minutes = sum(result.seconds for result in results) / 60
    yield "# Faults"
    yield ""
    yield (
        "What clients, brokers and operators see when something breaks, measured under load. What to do then: "
        "[runbook](runbook.md). Written by `make faults` (`python -m faults.run`) from one run."
    )
    yield ""
    yield (
        f"Each row starts a service of its own: Redis, and `mqnamesrv` with {WORKERS} workers, HTTP, RQ worker and "
        f"scheduler. Its load: {PER_S} lookups a second over {CONNECTIONS} connections, every topic in turn, each "
        f"answer compared with the replies that brokers got; {BROKERS} brokers that register every "
        f"{PERIOD_MS // 1000} s, the shortest period that brokers have (30 s is their default); {PASSING} more "
        f"that come and go; a Java broker {VERSION} with a producer ({PER_SECOND} messages a second, its own "
        f"repetitions off) and a consumer, each message counted by its number. The fault comes after {STEADY_S:.0f} s, "
        f"and the load goes on for at least {REPEATED_WITHIN_S:.0f} s after its end."
    )
    yield ""
    yield (
        "A lookup fails when a client that reconnects once, after 50 ms, has no answer within 3 s, or an error. A "
        "route is wrong when a broker is missing that has been registered for more than a second, or one is there that "
        "left or was killed more than a second before, or whose lease ended more than a second before: none may be, in "
        f"any row. Every broker must have registered again within {REPEATED_WITHIN_S:.0f} s "
        "of the last refusal, and no message may be lost, no send fail. *All right again* is when the last lookup or "
        "registration failed: seconds after the fault's end, and after its beginning."
    )
    yield ""
    yield from heading()
    for result in results:
        yield line(result)
    yield ""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    yield (
        f"{as_promised} of {len(results)} rows as promised (of {of} in all), in {minutes:.0f} minutes on "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}. "
        f"Machine: {os.cpu_count()} cores, {processor()}, Linux {platform.release()}, load average "
        f"{os.getloadavg()[1]:.1f}; Python {platform.python_version()}, {libraries}; {', '.join(versions())}."
    )
    yield from _looks(results)
    yield from _of_callers(results)
    failed_rows = [
        f"- `{result.name}`: {'; '.join(failed)}" for result in results if (failed := failures(result))
    ]
    if failed_rows:
        yield ""
        yield "## What failed, and how often"
        yield ""
        yield from failed_rows


def _looks(results: Sequence[Result]) -> Iterator[str]:
    """Yield the section of first looks."""
    yield ""
    yield "## The first look"
    yield ""
    yield (
        "The command that the [runbook](runbook.md) names first for each row, run while the fault stood, or when it "
        f"was over, and the lines by which it shows the fault, {LINES} at most. It is repeated until it does, which "
        f"has to be within {WITHIN_S:.0f} s of when the fault can be seen."
    )
    for result in results:
        if result.seen:
            yield ""
            yield from look_lines(result.name, result.seen)


def _of_callers(results: Sequence[Result]) -> Iterator[str]:
    """Yield the section of rows with access enforced."""
    yield ""
    yield "## With access enforced"
    yield ""
    yield OF_CALLERS
    yield ""
    yield (
        f"How often each was answered {' / '.join(outcome.value for outcome in Outcome)}, from the beginning of the "
        "fault on; and when all were answered as before again, in seconds from its end:"
    )
    yield ""
    yield from caller_heading()
    for result in results:
        if result.callers:
            yield caller_line(result)


def look_lines(name: str, seen: Seen) -> Iterator[str]:
    """Yield what the first look at a row printed."""
    code = "stopped after" if seen.exit_code is None else f"exit code {seen.exit_code} after"
    moment = "from its beginning" if seen.when is When.STANDING else "after its end"
    yield f"`{name}`, {seen.when.value}, {seen.at_s:.1f} s {moment}: {code} {seen.took_s:.1f} s."
    yield ""
    yield "```console"
    yield f"$ {seen.command}"
    yield from seen.lines
    yield "```"


def failures(result: Result) -> list[str]:
    """Return the errors of lookups and registrations, the most frequent first, and wrong routes."""
    if result.figures is None:
        return []
    errors = sorted(result.figures.errors.items(), key=lambda item: -item[1])
    return [f"{count} times {what}" for what, count in errors[:SHOWN]] + result.figures.wrong[:SHOWN]
