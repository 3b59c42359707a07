"""One row: the service, the load on it, the fault, and the judgement."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from faults.access import Counts, again_from, complaints, counts
from faults.callers import Callers
from faults.fleet import PERIOD_MS, Fleet
from faults.judgement import Span, figures, unrepeated
from faults.looks import Look, Seen, When, first_look, unseen
from faults.lookups import CONNECTIONS, Lookups
from faults.messages import NAME, TOPIC, Messages
from faults.notes import Tls
from faults.places import Place
from faults.result import Result, broken
from faults.row import Row
from faults.runbook import RUNBOOK, first_looks
from faults.truth import Presence, Truth
from testbed.rocketmq.enforced import OPEN, enforced
from testbed.rocketmq.stage import Stage

BROKERS = 100
STEADY_S = 8.0
"""Before the fault: long enough for every worker to have been asked for every route."""
REPEATED_WITHIN_S = PERIOD_MS / 1000 + 2
"""A registration counts as lost if none is accepted for so long: a period, and a bit for a busy machine."""


def tried(
    row: Row[Any], folder: Path, *, brokers: int = BROKERS, java: bool = True, connections: int = CONNECTIONS
) -> Result:
    """Return the result of a run of the row in `folder`, with lookups over so many connections."""
    began = time.monotonic()
    after_s = row.promise.recovers_s + REPEATED_WITHIN_S
    access = OPEN if row.enforcement is None else enforced(folder / "access")
    with Stage(folder, access) as stage, row.place(stage) as place:
        tls_files = Tls.of(access.certificates) if access.certificates else place.tls
        truth = Truth(place.lease_s)
        name_servers = ";".join(server.address for server in place.servers)
        fleet = Fleet(name_servers, truth, brokers=brokers, processes=row.processes, tls=tls_files)
        with fleet:
            seconds = STEADY_S + row.lasts_s + after_s
            messages = _messages(place, fleet, seconds) if java else None
            tls = tls_files.context() if tls_files else None
            ports = [server.port for server in place.servers]
            with (
                _callers(row, place, fleet) as callers,  # whose tokens are made before routes are judged
                Lookups(ports, sorted(fleet.serving), tls, connections=connections) as lookups,
            ):
                time.sleep(STEADY_S)
                span, seen = _broken_and_seen(row, place, fleet, after_s)
                if callers:
                    callers.await_all(again_from(span, row.promise.recovers_s))
            notes = tuple(fleet.notes)
            counted = messages.end() if messages else None
    judged = figures(lookups.done, notes, fleet.serving, fleet.changing, truth, span, row.promise.behind_s)
    refused = (note.at for note in notes if note.kind == "failed")
    missing = unrepeated(
        notes, (config.broker_name for config in fleet.steady), max((span.end, *refused)), REPEATED_WITHIN_S
    )
    broken_promises = [*broken(row.promise, judged, missing, counted), *(unseen(seen) if seen else ())]
    of_callers: tuple[Counts, ...] = ()
    if callers and row.enforcement:
        of_callers = tuple(counts(callers.asked, span, row.enforcement))
        recovers_s = row.promise.recovers_s
        broken_promises += complaints(
            callers.asked, span, row.enforcement, lasts_s=row.lasts_s, recovers_s=recovers_s
        )
    took_s = time.monotonic() - began
    return Result(
        row.name, row.title, took_s, tuple(broken_promises), span, judged, counted, seen, of_callers
    )


def _broken_and_seen(row: Row[Any], place: Place, fleet: Fleet, after_s: float) -> tuple[Span, Seen | None]:
    """Return when the fault was there, and what the first look printed; the load goes on for `after_s`.

    A fault that can be seen while it stands does so until it was."""
    command = first_looks(RUNBOOK.read_text())[row.name] if row.look else ""
    look: Look[Any] | None = row.look
    with ThreadPoolExecutor(1) as threads:
        begin = time.monotonic()
        standing = look is not None and look.when is When.STANDING
        seeing = threads.submit(first_look, look, command, place, begin) if look and standing else None
        with row.fault(place, fleet):
            time.sleep(row.lasts_s)
            if seeing:
                seeing.result()
        span = Span(begin, time.monotonic())
        if look and not standing:
            seeing = threads.submit(first_look, look, command, place, span.end)
        time.sleep(after_s)
        return span, seeing.result() if seeing else None


def _callers(row: Row[Any], place: Place, fleet: Fleet) -> AbstractContextManager[Callers | None]:
    """Return the callers that ask for a topic whose brokers all stay; none where access is open."""
    if row.enforcement is None:
        return nullcontext()
    return Callers(place, min(fleet.serving.keys() - fleet.changing))


def _messages(place: Place, fleet: Fleet, seconds: float) -> Messages:
    """Send messages for `seconds`; lookups of their topic are judged too."""
    options = place.java_options
    messages = Messages(place.stage, place.servers, seconds, options)
    place.server.await_brokers(NAME, 0)
    fleet.serving[TOPIC] = {NAME: messages.broker.address}
    fleet.truth.of(NAME).add(time.monotonic(), Presence.PRESENT)
    return messages
