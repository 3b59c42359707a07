"""The Lua scripts: one file per promise in `lua/`, shared functions in `lua/includes/`."""

import hashlib
import re
from functools import cache
from pathlib import Path

import msgspec

LUA = Path(__file__).resolve().parent.parent / "lua"
INCLUDE = re.compile(r'^--- @include "([a-z_]+)"\n', re.MULTILINE)


class LuaScript(msgspec.Struct, frozen=True):
    """A whole script as Redis gets it, and the SHA-1 that EVALSHA calls it by."""

    source: str
    sha: str


def _with_includes(text: str, done: set[str]) -> str:
    def included(match: re.Match[str]) -> str:
        name = match[1]
        if name in done:
            return ""
        done.add(name)
        return _with_includes((LUA / "includes" / f"{name}.lua").read_text(), done)

    return INCLUDE.sub(included, text)


@cache
def script(name: str) -> LuaScript:
    """Return the script `lua/<name>.lua`, each include once and before its first use."""
    return _script(_with_includes((LUA / f"{name}.lua").read_text(), set()))


@cache
def dry_script(name: str) -> LuaScript:
    """Return the same script over a store that keeps what it writes to itself (`lua/dry_run/store.lua`)."""
    store = (LUA / "dry_run" / "store.lua").read_text()
    return _script(f"{store}\nlocal function run()\n{script(name).source}\nend\nreturn handed_on(run())\n")


def _script(source: str) -> LuaScript:
    return LuaScript(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


def names_of_scripts() -> tuple[str, ...]:
    """Return the names of all scripts, sorted."""
    return tuple(sorted(path.stem for path in LUA.glob("*.lua")))
