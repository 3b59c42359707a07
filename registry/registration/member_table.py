"""The cached table of the member that registers, if the process caches tables."""

from sys import getsizeof

from msgspec.structs import replace

from registry.registration.cached_tables import TEXTS_MOST, CachedTable, CachedTables
from registry.registration.decision import Decision, Done
from registry.registration.diff import TableDiff, Texts
from registry.registration.request import RegisterContext
from rocketmq_remoting.table_blocks import TableBlocks


class MemberTable:
    """What is cached of one member's last registration, and what the present one makes of it."""

    def __init__(self, context: RegisterContext, tables: CachedTables | None) -> None:
        self._tables = None if context.delete_missing else tables
        self._context = context
        self._member = context.member

    @property
    def differs_from_last(self) -> bool:
        """Whether the registration certainly differs from the member's last one."""
        last = self.last()
        return last is not None and last.signature != self._context.signature

    def last(self) -> CachedTable | None:
        """Return the table as the last registration left it, whatever changed it since."""
        return None if self._tables is None else self._tables.last(self._member)

    def current(self, decision: Decision) -> CachedTable | None:
        """Return the table if it is still stored so, and may be compared with."""
        if self._tables is None or not decision.every:
            return None
        return self._tables.get(self._member, decision)

    def update(self, decision: Decision, diff: TableDiff, blocks: TableBlocks, done: Done) -> None:
        """Cache the table that was written; drop it unless it is what the body says."""
        if self._tables is None:
            return
        before = self.current(decision)
        self._tables.drop(self._member)
        if not (diff.applied and decision.every and blocks.unique):
            return
        known, known_bytes = (None, 0) if before is None else (before.texts, before.names_bytes)
        count = len(known or ())
        texts = _texts(known, diff.texts, whole=not blocks.unchanged)
        same_names = texts is not None and texts is known and len(texts) == count
        names_bytes = known_bytes if same_names else sum(map(getsizeof, texts or ()))
        state = decision.done(done.epoch, done.generation)
        self._tables.put(
            self._member,
            CachedTable(self._context.signature, state, blocks.current, texts, names_bytes),
        )

    def drop(self) -> None:
        """Cache nothing of the member."""
        if self._tables is not None:
            self._tables.drop(self._member)

    def restamp(self, table: CachedTable | None) -> None:
        """Cache the same table under the present signature."""
        if self._tables is not None and table is not None:
            self._tables.put(self._member, replace(table, signature=self._context.signature))


def _texts(before: Texts | None, written: Texts | None, *, whole: bool) -> Texts | None:
    """Return what is known to be stored, of topics that the body does not name too: an incremental registration names
    one of many. `written` is of all that it names if it was read `whole`.

    `before` is changed, of a table that is cached no more. A copy would take longer than all else that is done with it;
    what another registration makes of it meanwhile the store refuses, since the state moved."""
    if written is None:
        return None
    if before is not None:
        before.update(written)
        if len(before) <= TEXTS_MOST:
            return before
    return written if whole and len(written) <= TEXTS_MOST else None
