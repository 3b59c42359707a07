"""Memory of the kernel."""

from pathlib import Path


def slab_bytes() -> int:
    """Return the bytes of all slabs: of sockets, files, and what polls them."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("Slab:"))
    return int(line.split()[1]) * 1024
