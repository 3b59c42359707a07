"""Servers that end while others are tested."""

from tests.conformance.conftest import ending

__all__ = ["ending"]
