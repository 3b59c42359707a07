"""Files of principals, as tests write them."""

import os
from pathlib import Path

SECRET = "a secret of 24 characters"
OTHER = "another one of them, longer"
TOKEN = "mqns_abcd1234_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def write(path: Path, content: str | bytes, mode: int = 0o600) -> Path:
    """Write a file that others of the machine cannot read, unless the mode says so; replaced as a whole."""
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(content.encode() if isinstance(content, str) else content)
    fresh.chmod(mode)
    os.replace(fresh, path)
    return path


def access_file(folder: Path, text: str) -> Path:
    """Write the file, with secrets `a.key` and `b.key` and a token beside it."""
    write(folder / "a.key", SECRET)
    write(folder / "b.key", f"{OTHER}\n")
    write(folder / "a.token", f"{TOKEN}\n")
    return write(folder / "access.toml", text)
