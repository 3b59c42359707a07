"""The servers under comparison, started once for all examples."""

from collections.abc import Iterator

import pytest

from tests.differential.machine import Session
from tests.differential.sides import sides


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield both of Java's servers and this one; print the number of requests and the rules that were used."""
    with sides(tmp_path_factory.mktemp("differential")) as running:
        session = Session(running)
        yield session
    print(f"\n{session.steps.total()} steps: {dict(session.steps.most_common())}")
    print(f"allowed: {dict(session.allowed.most_common())}")
