"""Methods of HTTP."""

from typing import Final

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing here (RFC 9110 section 9.2.1); TRACE there is none."""
