"""A namespace on a real Redis; whatever a test did there, its keys and its stream agree in the end."""

from collections.abc import Iterator

import pytest
import redis as redis_py

from tests.registry.namespace import Namespace


@pytest.fixture
def ns(redis: redis_py.Redis) -> Iterator[Namespace]:
    namespace = Namespace(redis)
    yield namespace
    namespace.clean_up()
    namespace.check()
