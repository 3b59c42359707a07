"""One row: the service, the load on it, the fault, and the judgement."""

import time
from pathlib import Path
from typing import Any

from faults.fleet import PERIOD_MS, Fleet
from faults.judgement import Span, figures, lost
from faults.lookups import Lookups
from faults.messages import NAME, TOPIC, Messages
from faults.places import Place
from faults.result import Result, broken
from faults.row import Row
from faults.truth import Known, Truth
from tests.interop.stage import Stage

BROKERS = 100
STEADY_S = 8.0
"""Before the fault: long enough for every worker to have been asked for every route."""
BEAT_S = PERIOD_MS / 1000 + 2
"""A registration is lost when the next one is not accepted: a period, and a bit for a busy machine."""


def tried(row: Row[Any], folder: Path, *, brokers: int = BROKERS, java: bool = True) -> Result:
    """Run it in a folder of its own."""
    began = time.monotonic()
    after_s = row.promise.recovers_s + BEAT_S
    with Stage(folder) as stage, row.place(stage) as place:
        truth = Truth(place.lease_s)
        name_servers = ";".join(server.address for server in place.servers)
        fleet = Fleet(name_servers, truth, brokers=brokers, processes=row.processes, tls=place.tls)
        with fleet:
            seconds = STEADY_S + row.lasts_s + after_s
            messages = _messages(place, fleet, seconds) if java else None
            tls = place.tls.context() if place.tls else None
            ports = [server.port for server in place.servers]
            with Lookups(ports, sorted(fleet.serving), tls) as lookups:
                time.sleep(STEADY_S)
                begin = time.monotonic()
                with row.fault(place, fleet):
                    time.sleep(row.lasts_s)
                span = Span(begin, time.monotonic())
                time.sleep(after_s)
            notes = tuple(fleet.notes)
            counted = messages.end() if messages else None
    found = figures(lookups.done, notes, fleet.serving, fleet.changing, truth, span, row.promise.behind_s)
    refused = (note.at for note in notes if note.kind == "failed")
    missing = lost(notes, (config.broker_name for config in fleet.steady), max((span.end, *refused)), BEAT_S)
    return Result(
        row.name,
        row.title,
        time.monotonic() - began,
        tuple(broken(row.promise, found, missing, counted)),
        span,
        found,
        counted,
    )


def _messages(place: Place, fleet: Fleet, seconds: float) -> Messages:
    """Messages for so long; their broker is one that lookups are judged by, too."""
    options = place.java_options
    messages = Messages(place.stage, place.servers, seconds, options)
    place.server.await_brokers(NAME, 0)
    fleet.serving[TOPIC] = {NAME: messages.broker.address}
    fleet.truth.of(NAME).add(time.monotonic(), Known.THERE)
    return messages
