"""A child that runs another program: the embedded store, and what tests start."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from mqnamesrv.parent_death import die_with


class Program(msgspec.Struct, frozen=True):
    """A command line and its surroundings; without `env`, `output` and `cwd`, those of this process."""

    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    pass_fds: Sequence[int] = ()
    output: IO[bytes] | None = None
    cwd: Path | None = None

    def start(self) -> "subprocess.Popen[bytes]":
        """Start the process; OSError if the program cannot be run."""
        parent = os.getpid()
        return subprocess.Popen(
            self.argv,
            env=self.env,
            pass_fds=self.pass_fds,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            start_new_session=True,
            preexec_fn=lambda: die_with(parent),
        )
