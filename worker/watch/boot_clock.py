"""The clock that runs on while this process, or the machine it is on, stands still (CLOCK_BOOTTIME)."""

import time


def boot_time() -> float:
    """Return its seconds; asyncio's clock stands still with a suspended machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
