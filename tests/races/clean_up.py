"""The clean-up after a race, as the jobs do it."""

from registry.drivers import run
from registry.keys import Keys
from registry.plans import Origin
from registry.removal import expire, run_deferred
from testbed.eventually import eventually
from tests.registry.stored import Store


def clean_up_ends(store: Store, keys: Keys) -> None:
    """Return when no clean-up is pending; the claims of killed workers last two seconds."""

    def nothing_left() -> bool:
        run(expire(keys, Origin("expire", "job:expire")), store)
        run(run_deferred(keys, Origin("deferred", "job:deferred")), store)
        return not store.hgetall(keys.deferred) and not list(store.scan_iter(f"{keys.prefix}pending:*"))

    eventually(nothing_left)
