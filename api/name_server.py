"""The name server of an application: namespace, store and options; the request as the origin of changes."""

import itertools
import os
import secrets
from functools import cache
from typing import TypeVar

import msgspec
import redis
from flask import current_app, request

from access.classes import AccessClass
from access.policy import observes
from api.caller import actor_of, client_in, proof_in
from api.counters import COUNTERS
from api.dry_run import dry_run
from api.named import named_by
from registry import settings
from registry.drivers import Observe, run
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.options.catalogue import Options, overlay
from registry.ownership import REFUSE, Claimant, ReportedRefusals, registrant_at, registrant_of
from registry.plans import Origin, Plan

EXTENSION = "name-server"
PROBE_TIMEOUT_S = 0.5  # probes of orchestrators usually wait for one second

T = TypeVar("T")
_count = itertools.count(1)
_refusals = ReportedRefusals()


class NameServer(msgspec.Struct, frozen=True):
    """One namespace of a store. `given` are the options this process was started with.

    `probing` is a client of the same store that waits PROBE_TIMEOUT_S at most. `observe` gets all other round trips."""

    keys: Keys
    store: redis.Redis
    probing: redis.Redis
    given: Options
    observe: Observe = COUNTERS.observe

    def run(self, plan: Plan[T]) -> T:
        """Run a plan on the store (`registry.drivers.run`), dry where the request that is handled is a dry run."""
        dry = dry_run()
        return run(plan if dry is None else dry.of(plan), self.store, self.observe)

    def run_probe(self, plan: Plan[T]) -> T:
        """Run a plan on the store over `probing`."""
        return run(plan, self.probing, COUNTERS.observe)

    @property
    def limits(self) -> Limits:
        """Return how far requests can make the tables grow."""
        return Limits.of(self.given)

    def options(self) -> Options:
        """Return the options in force now, with those shared by all workers."""
        return overlay(self.given, self.run(settings.read(self.keys)))


def name_server() -> NameServer:
    """Return the name server of the application that handles this request."""
    server: NameServer = current_app.extensions[EXTENSION]
    return server


def origin() -> Origin:
    """Return this request as the origin of its events: its actor is the principal of its token, or the user that a
    trusted proxy names (`api.trusted_proxies`), then with the client as its peer; else the client."""
    op = f"{_process(os.getpid())}-{next(_count):x}"
    is_named = request.environ.get("REMOTE_USER") or proof_in(request.environ) is not None
    peer = client_in(request.environ) if is_named else ""
    return Origin(op, actor_of(request.environ), peer or None)


def own_origin() -> Origin:
    """Return this process as the origin of what it writes by itself."""
    process = _process(os.getpid())
    return Origin(f"{process}-{next(_count):x}", f"worker:{process}")


def host() -> str | None:
    """Return where this request came from, if the server says so."""
    return request.environ.get("REMOTE_ADDR")


def claimant() -> Claimant:
    """Return the caller of this request as owner of brokers: a principal only where it has a role for them."""
    options, proof = name_server().given, proof_in(request.environ)
    if proof is None or not proof.principal.classes & AccessClass.BROKER:
        registrant, claims = registrant_at(host()), True
    else:
        registrant = registrant_of(proof.principal.name)
        claims = proof.principal.limits.allow(named_by(request))
    return Claimant(
        registrant,
        guard=options.ownership_guard,
        exclusive=options.identity_conflicts == REFUSE,
        observes=observes(options),
        claims=claims,
        home=registrant_at(host()),
        reported=_refusals if dry_run() is None else ReportedRefusals(),
    )


@cache
def _process(pid: int) -> str:
    """Return this process's name; a random part, because containers repeat process ids."""
    return f"h{pid}.{secrets.token_hex(3)}"
