"""The console script `mqns`."""

import atexit
import gc
import io
import sys
from typing import Final

EXTRA: Final = frozenset({"httpx", "rich", "typer", "yaml"})
MISSING: Final = 1


def main() -> None:
    """Run `mqns`; exit code 1, with the command to install, if the extra is missing."""
    atexit.register(gc.freeze)  # no last collection: the end of the process frees all
    try:
        from mqns.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        print(f"mqns: {package} is missing; install mqns with its extra: mqns[cli]", file=sys.stderr)
        sys.exit(MISSING)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names from peers may have letters that the locale cannot encode
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="mqns")
