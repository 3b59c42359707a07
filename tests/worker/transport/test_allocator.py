"""Big blocks that come and go are not given back to the system each time."""

import platform
import subprocess
import sys
from pathlib import Path

from worker.transport.allocator import keep_freed_memory

ROUNDS = 200
PROGRAM = f"""
import resource, sys
from worker.transport.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
block = bytes(1_300_000)  # a registration of 10,000 topics; eight have what is read and what is joined
for rounds in (3, {ROUNDS}):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        blocks = [bytearray(block) for _ in range(16)]
        del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    return int(done.stdout)


def test_pages_of_what_was_freed_are_used_again() -> None:
    if platform.libc_ver()[0] != "glibc":
        assert not keep_freed_memory()
        return
    assert page_faults("kept") < ROUNDS
    assert page_faults("as it is") > 10 * ROUNDS
