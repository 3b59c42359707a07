"""`python -m launcher.throwaway COMMAND …`: the command with a store of its own, whose data is gone with it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from launcher.store import EmbeddedStore


def main() -> int:
    """The command's exit code; it finds the store's address as REDIS_URL."""
    with tempfile.TemporaryDirectory(prefix="redis-namesrv-") as folder:
        store = EmbeddedStore(Path(folder), keep=False)
        store.start()
        try:
            return subprocess.run(
                sys.argv[1:], env={**os.environ, "REDIS_URL": store.url}, check=False
            ).returncode
        finally:
            store.stop()


if __name__ == "__main__":
    sys.exit(main())
