"""`python -m mqnamesrv.throwaway COMMAND …`: run a command with a temporary store."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from mqnamesrv.store import EmbeddedStore


def main() -> int:
    """Run the command with the store's address in REDIS_URL, and return its exit code."""
    with tempfile.TemporaryDirectory(prefix="redis-namesrv-") as folder:
        store = EmbeddedStore(Path(folder), keep=False)
        store.start()
        signal.signal(signal.SIGINT, lambda *_: None)  # the command's to act on
        try:
            return subprocess.run(
                sys.argv[1:], env={**os.environ, "REDIS_URL": store.url}, check=False
            ).returncode
        finally:
            store.stop()


if __name__ == "__main__":
    sys.exit(main())
