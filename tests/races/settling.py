"""What the jobs do when a race is over."""

from registry.drivers import run
from registry.keys import Keys
from registry.plans import Act
from registry.removal import expire, settle_owed
from tests.harness.patience import eventually
from tests.registry.stored import Store


def settled(store: Store, keys: Keys) -> None:
    """Return when nothing is owed; the claims of killed workers hold for two seconds."""

    def nothing_left() -> bool:
        run(expire(keys, Act("expire", "job:expire")), store)
        run(settle_owed(keys, Act("settle", "job:settle")), store)
        return not store.hgetall(keys.owed) and not list(store.scan_iter(f"{keys.prefix}pending:*"))

    eventually(nothing_left, 10.0)
