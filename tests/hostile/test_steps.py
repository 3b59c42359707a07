"""No body keeps a worker from its other work, however big and odd: each is read in steps, and each step is short."""

import gc
import time
from collections.abc import Iterator

import pytest

from remoting.errors import BodyError
from remoting.registration import reading_register_broker_body
from tests.hostile.bodies import Case, cases

STEP_S = 0.1
"""Of processor time. Most take well below 1 ms, freeing 64 MB at the end takes 6 ms; the bound leaves room for a
machine that does other things too. Read at once, these bodies took up to 9 s."""


@pytest.fixture(autouse=True)
def nothing_of_other_tests_is_collected() -> Iterator[None]:
    """All that a run of the tests has made takes 0.1 s and more to look through; a worker has little."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_each_step_is_short(case: Case) -> None:
    body = case.body()
    steps = reading_register_broker_body(body, version=case.version, compressed=case.compressed, now_ms=0)
    longest, count = 0.0, 0
    while True:
        began = time.thread_time()
        try:
            next(steps)
        except (StopIteration, BodyError):
            break
        finally:
            longest, count = max(longest, time.thread_time() - began), count + 1
    assert longest < STEP_S
    assert len(body) < 3000 or count > 10
