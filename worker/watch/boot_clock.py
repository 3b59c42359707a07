"""The clock that runs on while this process, or the machine it is on, stands still (CLOCK_BOOTTIME)."""

import time
from functools import partial
from typing import Final

boot_time: Final = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Returns its seconds; asyncio's clock stands still with a suspended machine."""
