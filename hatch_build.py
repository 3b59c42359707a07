"""The server's build hook: compiles `worker/transport/epoll.pyx` next to its source, also when run as a program.
`--sanitize` compiles it with AddressSanitizer and UBSan into build/sanitize, and leaves the other as it is.

Without a C compiler or Python's headers the server does without it (see worker/transport/transports.py)."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
PLAIN = ["-g0"]
SANITIZED = [
    *(
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-fno-omit-frame-pointer",
        "-O1",
        "-g",
    )
]
"""Linked with no runtime: gcc's is preloaded (tools/sanitize.sh), or the one of the fuzzer's."""


class CompiledTransport(BuildHookInterface):  # type: ignore[type-arg]
    """Makes a wheel that holds the compiled transport one of this Python and system."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before each build; `version` is `standard` or `editable`."""
        client = ROOT / "distributions" / "mqns"
        if version == "standard" and "PIP_BUILD_TRACKER" in os.environ and client.is_dir():
            # `pip install .` takes mqns from the same checkout
            requirements = self.metadata.core.dependencies
            mqns = requirements.index(f"mqns=={self.metadata.version}")
            requirements[mqns] = f"mqns @ {client.as_uri()}"
        if not built():
            self.app.display_warning(
                "no C compiler or no Python headers: built without the compiled transport"
            )
            return
        build_data["infer_tag"], build_data["pure_python"] = True, False
        build_data["artifacts"].append("worker/transport/epoll.*.so")


def built() -> bool:
    """Whether it is there now, no older than its source."""
    return subprocess.run([sys.executable, __file__], cwd=ROOT).returncode == 0


def build(sanitize: bool = False) -> None:
    """Compile what is out of date; SystemExit or an exception of the compiler's if that cannot be."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    if not sanitize:
        _remove_older()  # else, if this fails, tests would try what the source no longer says
    into = "build/sanitize" if sanitize else "build/cython"
    flags = SANITIZED if sanitize else PLAIN
    source = Extension("worker.transport.epoll", ["worker/transport/epoll.pyx"], extra_compile_args=flags)
    modules = cythonize([source], build_dir=into, quiet=True, emit_linenums=sanitize)
    command = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
    command.inplace, command.build_temp, command.build_lib = not sanitize, into, into
    command.ensure_finalized()
    command.run()


def _remove_older() -> None:
    source = ROOT / "worker/transport/epoll.pyx"
    for compiled in source.parent.glob("epoll.*.so"):
        if compiled.stat().st_mtime < source.stat().st_mtime:
            compiled.unlink()


if __name__ == "__main__":
    build(sanitize="--sanitize" in sys.argv[1:])
