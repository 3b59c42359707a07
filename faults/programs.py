"""The programs that rows need besides Redis and Java, and what they are."""

import shutil
import subprocess
from collections.abc import Iterator

COMMANDS = (
    ("redis-server", "--version"),
    ("haproxy", "-v"),
    ("java", "-version"),
)


def versions() -> Iterator[str]:
    """The first line of what each says about itself."""
    for command in COMMANDS:
        if shutil.which(command[0]):
            said = subprocess.run(command, capture_output=True, text=True, check=True)
            yield (said.stdout or said.stderr).splitlines()[0].strip()
