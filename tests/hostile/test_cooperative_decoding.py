"""Decoding yields to the event loop after each short step, for big and malformed bodies too."""

import gc
import time
from collections.abc import Iterator

import pytest

from rocketmq_remoting.errors import BodyError
from rocketmq_remoting.registration import decode_register_broker_body_cooperatively
from tests.hostile.bodies import Case, cases

STEP_S = 0.1
"""Of processor time. Most take well below 1 ms, freeing 64 MB at the end takes 6 ms; the bound leaves room for a
machine that does other things too. Read at once, these bodies took up to 9 s."""


@pytest.fixture(autouse=True)
def nothing_of_other_tests_is_collected() -> Iterator[None]:
    """Freeze objects of other tests: a garbage collection of them takes 0.1 s and more; a worker has few."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_each_step_is_short(case: Case) -> None:
    body = case.body()
    decoding = decode_register_broker_body_cooperatively(
        body, version=case.version, compressed=case.compressed, now_ms=0
    )
    longest, count = 0.0, 0
    while True:
        began = time.thread_time()
        try:
            next(decoding)
        except (StopIteration, BodyError):
            break
        finally:
            longest, count = max(longest, time.thread_time() - began), count + 1
    assert longest < STEP_S
    assert len(body) < 3000 or count > 10
