"""Servers with one rule broken: the sources are copied, and one place in them is changed."""

import shutil
from pathlib import Path

import msgspec

from faults.history.judgement import Rule

SOURCES = Path(__file__).resolve().parents[2]
TAKEN = ("api", "launcher", "lua", "pipeline", "registry", "remoting", "worker")


class Bug(msgspec.Struct, frozen=True):
    """In `file`, `was` is replaced by `becomes`; a history then breaks one of `rules` at least."""

    file: str
    was: str
    becomes: str
    rules: frozenset[Rule]

    def planted(self, tree: Path) -> Path:
        """The folder with the changed sources."""
        for name in TAKEN:
            shutil.copytree(SOURCES / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(SOURCES / "wsgi.py", tree)
        file = tree / self.file
        text = file.read_text()
        assert text.count(self.was) == 1, (
            f"{self.file} has changed: {self.was!r} is there {text.count(self.was)} times"
        )
        file.write_text(text.replace(self.was, self.becomes))
        return tree


BUGS = {
    "a worker's cache does not follow removals": Bug(
        "worker/invalidation.py",
        'self._cache.drop_brokers((event.get("broker"),))\n        self._settled(event.get("broker"), None)',
        "pass",
        frozenset({"own writes", "not long behind", "leases end"}),
    ),
    "a change is acknowledged before the worker's own cache has followed it": Bug(
        "worker/service.py",
        "if answer.event_id and not self.follower.passed(answer.event_id):",
        "if False:",
        frozenset({"own writes"}),
    ),
    "104 removes whoever is there": Bug(
        "lua/unregister.lua",
        "if key and address_of(key) == address then",
        "if key then",
        frozenset({"own writes", "never back", "leases last"}),
    ),
    "a renewal brings a lapsed lease back, and nobody is told": Bug(
        "lua/renew.lua",
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
        "worker/route_cache.py",
        "if fill.stale or not fill.named.isdisjoint(depends.brokers) or (depends.every and fill.named):",
        "if False:",
        frozenset({"own writes", "not long behind", "never back"}),
    ),
}
