"""With this folder on PYTHONPATH, `worker.transport.epoll` is the one built with sanitizers (`make sanitize`), in this
process and in all that it starts; the one beside its source stays what it is."""

import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

NAME = "worker.transport.epoll"
BUILT = Path(__file__).parents[2] / "build" / "sanitize" / f"{NAME.replace('.', '/')}{EXTENSION_SUFFIXES[0]}"


class Finder:
    """Finds that one module."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """As import wants it."""
        return spec_from_file_location(name, BUILT) if name == NAME else None


sys.meta_path.insert(0, Finder)
