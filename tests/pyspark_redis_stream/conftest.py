"""The session of the pipeline's tests, and their patience."""

from pathlib import Path

import pytest

from tests.mqpipeline.conftest import PATIENCE_S, spark

__all__ = ["spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that start Spark may take longer than others."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))
