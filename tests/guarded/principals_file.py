"""The access file of a world: TOML, with its secrets and tokens in files beside it."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from json import dumps
from pathlib import Path

from tests.guarded.world import Principal, Secret


class PrincipalsFile:
    """Rewritten as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "access.toml"

    def write(self, principals: Mapping[str, Principal]) -> None:
        self._put(self.path, "\n".join(line for one in principals.items() for line in self._lines(*one)))

    def spoil(self) -> None:
        """Leave what no access file is."""
        self._put(self.path, '[principals.red]\nroles = ["reader"]\nunknown = 1\n')

    def _lines(self, name: str, principal: Principal) -> Iterator[str]:
        yield f"[principals.{name}]"
        yield f"roles = {_texts(principal.roles)}"
        limits = [f"{kind} = {_texts(patterns)}" for kind, patterns in principal.limits.items()]
        if principal.limit_reads:
            limits.append("limitReads = true")
        yield f"limits = {{ {', '.join(limits)} }}"
        yield f"certificates = {_texts(principal.certificates)}"
        tokens = (self._secret(f"{token_id}.token", token) for token_id, token in principal.tokens.items())
        yield f"tokens = [{', '.join(tokens)}]"
        for key, secrets in principal.keys.items():
            files = (self._secret(f"{key}.{at}", secret) for at, secret in enumerate(secrets))
            yield f"[[principals.{name}.keys]]\naccessKey = {dumps(key)}\nsecrets = [{', '.join(files)}]"

    def _secret(self, file: str, secret: Secret) -> str:
        self._put(self._folder / file, secret.text)
        end = (
            ""
            if secret.ends is None
            else f", expires = {datetime.fromtimestamp(secret.ends, UTC).isoformat()}"
        )
        return f"{{ file = {dumps(file)}{end} }}"

    def _put(self, path: Path, text: str) -> None:
        fresh = path.with_name(f".{path.name}")
        fresh.write_text(text)
        fresh.chmod(0o600)
        os.replace(fresh, path)


def _texts(texts: tuple[str, ...]) -> str:
    return dumps(texts)
