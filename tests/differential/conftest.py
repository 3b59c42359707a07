"""The servers under comparison, started once for all examples."""

from collections.abc import Iterator

import pytest

from tests.differential.machine import Session
from tests.differential.sides import sides


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Both of Java's servers and ours; at the end it says what was done and which rules were made use of."""
    with sides(tmp_path_factory.mktemp("differential")) as running:
        session = Session(running)
        yield session
    print(f"\n{session.steps.total()} steps: {dict(session.steps.most_common())}")
    print(f"allowed: {dict(session.allowed.most_common())}")
