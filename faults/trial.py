"""One row: the service, the load on it, the fault, and the judgement."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from faults.fleet import PERIOD_MS, Fleet
from faults.judgement import Span, figures, unrepeated
from faults.looks import Look, Seen, When, first_look, unseen
from faults.lookups import CONNECTIONS, Lookups
from faults.messages import NAME, TOPIC, Messages
from faults.places import Place
from faults.result import Result, broken
from faults.row import Row
from faults.runbook import RUNBOOK, first_looks
from faults.truth import Presence, Truth
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
    with Stage(folder) as stage, row.place(stage) as place:
        truth = Truth(place.lease_s)
        name_servers = ";".join(server.address for server in place.servers)
        fleet = Fleet(name_servers, truth, brokers=brokers, processes=row.processes, tls=place.tls)
        with fleet:
            seconds = STEADY_S + row.lasts_s + after_s
            messages = _messages(place, fleet, seconds) if java else None
            tls = place.tls.context() if place.tls else None
            ports = [server.port for server in place.servers]
            with Lookups(ports, sorted(fleet.serving), tls, connections=connections) as lookups:
                time.sleep(STEADY_S)
                span, seen = _broken_and_seen(row, place, fleet, after_s)
            notes = tuple(fleet.notes)
            counted = messages.end() if messages else None
    judged = figures(lookups.done, notes, fleet.serving, fleet.changing, truth, span, row.promise.behind_s)
    refused = (note.at for note in notes if note.kind == "failed")
    missing = unrepeated(
        notes, (config.broker_name for config in fleet.steady), max((span.end, *refused)), REPEATED_WITHIN_S
    )
    return Result(
        row.name,
        row.title,
        time.monotonic() - began,
        (*broken(row.promise, judged, missing, counted), *(unseen(seen) if seen else ())),
        span,
        judged,
        counted,
        seen,
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


def _messages(place: Place, fleet: Fleet, seconds: float) -> Messages:
    """Send messages for `seconds`; lookups of their topic are judged too."""
    options = place.java_options
    messages = Messages(place.stage, place.servers, seconds, options)
    place.server.await_brokers(NAME, 0)
    fleet.serving[TOPIC] = {NAME: messages.broker.address}
    fleet.truth.of(NAME).add(time.monotonic(), Presence.PRESENT)
    return messages
