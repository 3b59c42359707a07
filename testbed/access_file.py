"""Access files of tests, and the secrets they name (docs/access.md)."""

import os
from pathlib import Path


class AccessFile:
    """An access file in a folder, rewritten at once as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "access.toml"

    def write(self, text: str, **secrets: str) -> None:
        """Write these secrets, each to the file of its name, and then the access file."""
        for name, secret in secrets.items():
            self._put(self._folder / name, secret)
        self._put(self.path, text)

    def _put(self, path: Path, text: str) -> None:
        new = path.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o600)
        os.replace(new, path)


def principal(name: str, *roles: str, key: str = "K", secrets: str = '{ file = "k" }', more: str = "") -> str:
    """Return the TOML of a principal with an ACL key."""
    return (
        f"[principals.{name}]\nroles = {list(roles)}\n{more}\n"
        f'keys = [{{ accessKey = "{key}", secrets = [{secrets}] }}]\n'
    )
