"""The console script `mqpipeline`."""

import signal
import sys
from typing import Final

from mqpipeline.cli.interrupt import interrupted

EXTRA: Final = frozenset({"pyspark", "rich", "typer"})
MISSING: Final = 1


def main() -> None:
    """Run `mqpipeline`; exit code 1 and a line that says what to install where an extra is missing."""
    signal.signal(signal.SIGINT, interrupted)
    try:
        from mqpipeline.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        print(f"mqpipeline: {package} is missing; install mqpipeline with its requirements", file=sys.stderr)
        sys.exit(MISSING)
    app(prog_name="mqpipeline")
