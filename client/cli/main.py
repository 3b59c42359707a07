"""The console script `mqns`."""

import io
import sys
from typing import Final

EXTRA: Final = frozenset({"httpx", "rich", "typer", "yaml"})
MISSING: Final = 1


def main() -> None:
    """Run `mqns`; exit code 1 and a line that says what to install where the extra is missing."""
    try:
        from client.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        print(f"mqns: {package} is missing; please: pip install 'redis-namesrv[cli]'", file=sys.stderr)
        sys.exit(MISSING)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a peer's name may have letters that the locale has not
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="mqns")
