"""What a request works with: the registry, its store, and who acts."""

import itertools
import os
import secrets
from functools import cache
from typing import TypeVar

import msgspec
import redis
from flask import current_app, request

from registry import settings
from registry.drivers import run
from registry.keys import Keys
from registry.options import Options, overlay
from registry.plans import Act, Plan

EXTENSION = "name-server"
HURRY_S = 0.5  # probes of orchestrators usually wait for one second

T = TypeVar("T")
_count = itertools.count(1)


class NameServer(msgspec.Struct, frozen=True):
    """One namespace of a store. `given` are the options this process was started with.

    `hurried` is a client of the same store that waits HURRY_S at most."""

    keys: Keys
    store: redis.Redis
    hurried: redis.Redis
    given: Options

    def run(self, plan: Plan[T]) -> T:
        """As `registry.drivers.run`."""
        return run(plan, self.store)

    def run_hurried(self, plan: Plan[T]) -> T:
        """The same over `hurried`."""
        return run(plan, self.hurried)

    def options(self) -> Options:
        """The options in force now, those shared by all workers included."""
        return overlay(self.given, self.run(settings.read(self.keys)))


def name_server() -> NameServer:
    """That of the application which handles this request."""
    found: NameServer = current_app.extensions[EXTENSION]
    return found


def act() -> Act:
    """This request, as the events it causes name it."""
    remote = filter(None, map(request.environ.get, ("REMOTE_ADDR", "REMOTE_PORT")))
    return Act(f"{_process(os.getpid())}-{next(_count):x}", ":".join(("http", *remote)))


@cache
def _process(pid: int) -> str:
    """Containers have the same process ids again and again, hence the random part."""
    return f"h{pid}.{secrets.token_hex(3)}"
