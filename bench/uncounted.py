"""A copy of this tree whose workers count nothing: what counting costs is the difference (`bench.counting`).

No option of the product switches counting off, and the compiled transport has it in C; so the places that count are cut
out of a copy. A place that is no longer as it stands here ends the bench."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["CUTS", "ROOT", "copied", "cut"]

ROOT: Final = Path(__file__).resolve().parent.parent
EPOLL: Final = "worker/transport/epoll.pyx"
CUTS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    EPOLL: (
        (
            "            if cuts.topic:\n                lookups += 1\n            else:\n"
            "                uses = <list>cached.uses\n"
            "                uses[0] += 1\n",
            "",
        ),
        ("    if out.lookups:\n        requests.counters.lookups[0] += out.lookups\n", ""),
        ("        cdef bint timed = self._poller._answered % TIMED_OF == 0\n", ""),
        ("        cdef double began = clock() if timed else 0\n", ""),
        (
            "                self._poller._answered += 1\n                self._poller.lookups += out.lookups\n"
            "                if timed and out.lookups:\n"
            "                    cached.counters.lookups_took(clock() - began, TIMED_OF * out.lookups)\n",
            "",
        ),
        ("        self._poller.written += size\n", ""),
    ),
    "worker/cache/cached_requests.py": (
        (
            "                    longer.uses[0] += 1\n"
            "                    longer.uses[1] += longer.body_bytes\n",
            "",
        ),
        ("                cached.uses[0] += 1\n", ""),
        (
            "        cached.uses[0] += 1\n        cached.uses[1] += cached.body_bytes\n",
            "",
        ),
    ),
    "worker/cache/repeats.py": (
        ("            self._parts.counters.confirmed(cached.code, perf_counter() - began)\n", ""),
        ("check, peer, perf_counter(), self", "check, peer, 0.0, self"),
    ),
    "worker/answering.py": (
        (
            "        if command.code in OF_BROKERS and not reply.denied:\n"
            "            self._brokers.answered(reply, command, peer)\n"
            "        if reply.refusal:\n            self._counters.registrations.limited(reply.refusal)\n",
            "",
        ),
        (
            "        denied = ResponseCode.NO_PERMISSION\n"
            "        self._counters.answered(command.code, denied if reply.denied else reply.code)\n",
            "",
        ),
        ("        self._begun[id(command)] = perf_counter()\n", ""),
        (
            "        seconds = perf_counter() - self._begun.pop(id(command))\n"
            "        self._counters.took(command.code, seconds)\n"
            "        if command.code == REGISTRATION:\n            self._brokers.took(reply, seconds)\n",
            "",
        ),
        ("        self._cached += 1\n        if self._cached % SAMPLED:\n", "        if True:\n"),
    ),
    "metrics/store_commands.py": (
        (
            '        """Count a round trip: each of its commands took as long as all together."""\n',
            "        return\n",
        ),
    ),
    "metrics/publisher.py": (
        ('        """Publish, if the last time is PUBLISH_EVERY_S ago."""\n', "        return\n"),
    ),
}
"""By file, what stands there and what it becomes."""


def copied(folder: Path, cuts: Mapping[str, tuple[tuple[str, str], ...]] = CUTS) -> Path:
    """Copy this tree without these cuts, compile its transport, and return the program that is its `mqnamesrv`.

    Raises RuntimeError for a place that is not there, and what the compiler does."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in listed.split("\0"):
        if name.endswith((".py", ".pyx", ".lua", ".json", ".toml")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    for name, places in cuts.items():
        (folder / name).write_text(cut(name, (folder / name).read_text(), places))
    subprocess.run([sys.executable, "hatch_build.py"], cwd=folder, check=True)
    program = folder / ".venv/bin/mqnamesrv"
    program.parent.mkdir(parents=True)
    start = "import sys; from mqnamesrv.cli import main; sys.exit(main())"
    program.write_text(
        f"""#!/bin/sh\ncd {folder} && PYTHONPATH={folder} exec {sys.executable} -c '{start}' "$@"\n"""
    )
    program.chmod(0o755)
    return program


def cut(name: str, text: str, places: tuple[tuple[str, str], ...]) -> str:
    """Return the text of a file with something else in these places. Raises RuntimeError for one that is not there."""
    for place, instead in places:
        if text.count(place) != 1:
            raise RuntimeError(f"{name} has this {text.count(place)} times, not once: {place!r}")
        text = text.replace(place, instead)
    return text
