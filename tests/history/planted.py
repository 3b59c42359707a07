"""Servers with one rule broken: the sources are copied, and one place in them is changed."""

import shutil
from pathlib import Path

import msgspec

from faults.history.judgement import Rule

SOURCES = Path(__file__).resolve().parents[2]
TAKEN = ("api", "mqnamesrv", "lua", "mqpipeline", "registry", "rocketmq_remoting", "worker")


class Bug(msgspec.Struct, frozen=True):
    """In `file`, `was` is replaced by `becomes`; a history then breaks one of `rules` at least."""

    file: str
    was: str
    becomes: str
    rules: frozenset[Rule]

    def planted(self, tree: Path) -> Path:
        """Copy the sources with the change, and return their folder.

        Their bytecode comes too, without what is just being written: only the changed file is compiled."""
        for name in TAKEN:
            shutil.copytree(SOURCES / name, tree / name, ignore=shutil.ignore_patterns("*.pyc.*"))
        shutil.copy(SOURCES / "wsgi.py", tree)
        (tree / self.file).write_text(self.text().replace(self.was, self.becomes))
        return tree

    def text(self) -> str:
        """Return the file as it is. Raises AssertionError where the place to change is not in it, once."""
        text = (SOURCES / self.file).read_text()
        times = text.count(self.was)
        assert times == 1, f"{self.file} has changed: {self.was!r} is there {times} times"
        return text


BUGS = {
    "a worker's cache does not follow removals": Bug(
        "worker/cache/invalidation.py",
        'self._cache.drop_brokers((event.get("broker"),))\n        self._lists.changed(Made.BROKERS, Made.TOPICS)\n'
        '        self._returned(event.get("broker"), None)',
        "pass",
        frozenset({"own writes", "not long behind", "leases end"}),
    ),
    "a change is acknowledged before the worker's own cache has followed it": Bug(
        "worker/assembly.py",
        "if self.follower.passed(event_id):",
        "if True:",
        frozenset({"own writes"}),
    ),
    "104 removes any member": Bug(
        "lua/unregister.lua",
        "if key and address_of(key) == address then",
        "if key then",
        frozenset({"own writes", "never back", "leases last"}),
    ),
    "a renewal reinstates a lapsed lease without an event": Bug(
        "lua/includes/renewals.lua",
        "elseif now >= lease then",
        "elseif false then",
        frozenset({"own writes", "leases last"}),
    ),
    "leases are judged two seconds late": Bug(
        "lua/includes/lease.lua",
        "return ctx.now >= end_of(ctx, lease)",
        "return ctx.now >= end_of(ctx, lease) + 2000",
        frozenset({"leases end"}),
    ),
    "a fill is kept though what it was made of has changed meanwhile": Bug(
        "worker/cache/routes.py",
        "if fill.stale or (depends.every and fill.changed) or not fill.changed.isdisjoint(depends.brokers):",
        "if False:",
        frozenset({"own writes", "not long behind", "never back"}),
    ),
}
