"""A namespace of the KV configuration, followed at the first name server that answers."""

from collections.abc import Sequence

from mqns.mirror.source import Source
from mqns.mirror.target import Target

__all__ = ["KVCopy"]


class KVCopy:
    """Writes what changed in a namespace since the round before: all of it in the first one, and nothing is deleted
    then. So what an operator sets at the target stays until the key changes at the source."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._before: dict[str, str] = {}

    async def follow(self, sources: Sequence[Source], target: Target) -> list[str]:
        """Write the changes, and return `namespace/key` of each."""
        for source in sources:
            if source.failure is None and (table := await source.kv(self._namespace)) is not None:
                return await self._write(table, target)
        return []

    async def _write(self, table: dict[str, str], target: Target) -> list[str]:
        changed = []
        keys = sorted(table.keys() | self._before.keys())
        for key in keys:
            value = table.get(key)
            if value != self._before.get(key):
                if await target.set_kv(self._namespace, key, value):
                    changed.append(f"{self._namespace}/{key}")
                if value is None:
                    del self._before[key]
                else:
                    self._before[key] = value
        return changed
