"""Java's properties files."""

from collections.abc import Mapping
from pathlib import Path


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a file of plain keys and values, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path
