"""Java's name servers and this one under the same random requests."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.differential.machine import Machine, Session

EXAMPLES = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "0"))
"""How many examples of up to 50 steps; 0 is what CI does."""
PROFILE = settings(
    max_examples=EXAMPLES or 16,
    stateful_step_count=50 if EXAMPLES else 30,
    phases=[Phase.generate, Phase.shrink] if EXAMPLES else [Phase.generate],  # shrinking takes minutes
    derandomize=not EXAMPLES,  # each night tries something new; a change is judged by the same steps
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(7200)
def test_every_answer_is_javas(session: Session) -> None:
    run_state_machine_as_test(lambda: Machine(session), settings=PROFILE)  # type: ignore[arg-type]
