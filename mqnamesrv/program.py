"""A child that runs another program: the embedded store, and what tests start."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from mqnamesrv import parent_death


class Program(msgspec.Struct, frozen=True):
    """A command line and its surroundings; without `env`, `output` and `cwd`, those of this process."""

    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    pass_fds: Sequence[int] = ()
    output: IO[bytes] | None = None
    cwd: Path | None = None

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the process; OSError if the program cannot be run.

        No code of ours runs between fork and exec: it would run amid what other threads have left, and end what they
        share with the child, such as their connections to Java."""
        if shutil.which(self.argv[0]) is None:
            raise FileNotFoundError(f"there is no program {self.argv[0]}")
        dies_with = [sys.executable, "-I", "-S", parent_death.__file__, str(os.getpid())]
        return subprocess.Popen(
            [*dies_with, *self.argv],
            env=self.env,
            pass_fds=self.pass_fds,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            start_new_session=True,
        )
