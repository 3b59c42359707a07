"""What differs between a backup and what a server has, and so what a restore would change."""

from collections.abc import Iterator, Mapping

import msgspec

from mqns.cli.backup.state import SavedDrain, State
from mqns.cli.previews import Preview, named_text
from rocketmq_remoting.route_changes import Named

__all__ = ["Differences", "KVChange", "differences", "previews"]


class KVChange(msgspec.Struct, frozen=True):
    """A KV value that the server has (None: has not), and is to have (None: to lose)."""

    namespace: str
    key: str
    before: str | None
    after: str | None

    @property
    def name(self) -> str:
        """The entry for people."""
        return f"{self.namespace}/{self.key}"

    @property
    def growth(self) -> int:
        """Bytes by which the namespace grows. Changes go in its order, so that none needs more room than the end."""
        return self._bytes(self.after) - self._bytes(self.before)

    def _bytes(self, value: str | None) -> int:
        return 0 if value is None else len(self.key.encode()) + len(value.encode())


class Differences(msgspec.Struct, frozen=True):
    """Changes that make a server have what a backup has; `over` are brokers of drains whose end has passed."""

    kv: tuple[KVChange, ...]
    settings: Mapping[str, str]
    drains: Mapping[str, SavedDrain]
    undrained: tuple[str, ...]
    over: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many changes there are."""
        return len(self.kv) + len(self.settings) + len(self.drains) + len(self.undrained)


def differences(before: State, saved: State, now_millis: int, *, delete: bool) -> Differences:
    """Return what differs; with `delete` KV values and drains that the backup has not are removed."""
    over = {name for name, drain in saved.drains.items() if _is_over(drain, now_millis)}
    drains = {name: drain for name, drain in saved.drains.items() if drain is not None and name not in over}
    changes = [*_put(before, saved), *(_deleted(before, saved) if delete else ())]
    return Differences(
        tuple(sorted(changes, key=lambda change: (change.growth, change.name))),
        {key: text for key, text in saved.settings.items() if before.settings.get(key) != text},
        {name: drain for name, drain in sorted(drains.items()) if before.drains.get(name) != drain},
        tuple(sorted(before.drains.keys() - drains.keys())) if delete else (),
        tuple(sorted(over)),
    )


def previews(url: str, found: Differences) -> list[Preview]:
    """Return a sentence for each kind of change at the server with this URL, with the first names of each."""
    kinds = {
        "put KV values": [change.name for change in found.kv if change.after is not None],
        "delete KV values": [change.name for change in found.kv if change.after is None],
        "set options": found.settings,
        "drain brokers": found.drains,
        "end drains": found.undrained,
    }
    rows = [
        Preview(url, f"{kind}: {named_text(Named.of(names))}", changes=True)
        for kind, names in kinds.items()
        if names
    ]
    return rows or [Preview(url, "restore", changes=False)]


def _put(before: State, saved: State) -> Iterator[KVChange]:
    for namespace, table in saved.kv.items():
        stored = before.kv.get(namespace, {})
        for key, value in table.items():
            if stored.get(key) != value:
                yield KVChange(namespace, key, stored.get(key), value)


def _deleted(before: State, saved: State) -> Iterator[KVChange]:
    for namespace, table in before.kv.items():
        for key in table.keys() - saved.kv.get(namespace, {}).keys():
            yield KVChange(namespace, key, table[key], None)


def _is_over(drain: SavedDrain | None, now_millis: int) -> bool:
    return drain is not None and drain.until_millis is not None and drain.until_millis <= now_millis
