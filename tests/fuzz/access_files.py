"""The access file and the files that it names, whatever is in them: principals of all of it, or the one error."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from time import time
from typing import Any, Final

from access.access_file import InvalidAccessFile, Loaded, load
from access.private_files import FileRefused, PrivateFiles
from access.watched_access_file import WatchedAccessFile
from tests.access.files import OTHER, SECRET, TOKEN, write
from tests.fuzz.known_principals import temporary_folder

NAMES: Final = ("access.toml", "a.key", "b.key", "a.token")
BETWEEN: Final = b"\0"
"""What separates the contents of these; no text of TOML has it."""
LONGEST_ERROR: Final = 1_100
"""Characters, with the path."""
SECRET_SHOWN: Final = 16
"""Characters of a secret that is looked for in an error: a shorter one may be a part of its words."""
PATH: Final = Path("/somewhere/access.toml")
SECRET_LEAST: Final = 8
WHOLE: Final = b"""[principals.agent]
roles = ["broker", "reader"]
limits = { clusters = ["c*"], brokers = [], topics = ["o-*", "T"], kv = ["*"], limitReads = true }
certificates = ["uri:spiffe://td/*/b", "dns:b-*.svc", "cn:agent"]
tokens = [{ file = "a.token", expires = 2030-01-01T00:00:00+01:00 }]
[[principals.agent.keys]]
accessKey = "agent"
secrets = [{ file = "a.key", expires = 2027-01-01T00:00:00Z }, { file = "b.key" }]
[principals."x.y"]
roles = ["admin"]
tokens = [{ id = "abcd1235", hash = "sha256:\
0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }]
"""
GOOD: Final = BETWEEN.join((WHOLE, SECRET.encode(), OTHER.encode(), TOKEN.encode()))


class _Contents(PrivateFiles):
    """Files in memory."""

    def __init__(self, contents: Mapping[Path, bytes]) -> None:
        super().__init__()
        self._contents = contents

    def read(self, path: Path, most: int) -> bytes:
        content = self._contents.get(path)
        if content is None or len(content) > most:
            raise FileRefused("cannot be read")
        return content


def access_files(data: bytes) -> None:
    """Either all principals of the file with all that they have, or an error in one line without a secret."""
    contents = dict(zip(NAMES, data.split(BETWEEN, len(NAMES) - 1), strict=False))
    outcome = _load(contents)
    if isinstance(outcome, Loaded):
        _check_whole(outcome, contents)
    else:
        _check_error(str(outcome), contents)


def _load(contents: Mapping[str, bytes]) -> Loaded | InvalidAccessFile:
    try:
        return load(PATH, _Contents({PATH.parent / name: content for name, content in contents.items()}))
    except InvalidAccessFile as error:
        return error


def _check_error(text: str, contents: Mapping[str, bytes]) -> None:
    assert text.startswith(f"{PATH}: ")
    assert text.isprintable(), text
    assert len(text) < LONGEST_ERROR, len(text)
    for name in NAMES[1:]:
        secret = contents.get(name, b"").decode(errors="replace").strip()
        assert secret not in text or len(secret) < SECRET_SHOWN or secret.encode() in contents[NAMES[0]]


def _check_whole(loaded: Loaded, contents: Mapping[str, bytes]) -> None:
    """Compare with the document, as Python's own parser has it."""
    tables: Mapping[str, Any] = tomllib.loads(contents[NAMES[0]].decode())["principals"]
    principals = {principal.name: principal for principal in loaded.principals}
    assert principals.keys() == tables.keys()
    for name, table in tables.items():
        principal = principals[name]
        assert re.fullmatch(r"[\w.-]{1,64}", name, re.ASCII)
        assert {str(role) for role in principal.roles} == set(table["roles"])
        keys = [
            (key["accessKey"], [_end(secret) for secret in key["secrets"]]) for key in table.get("keys", ())
        ]
        assert [(key.access_key, [one.expires for one in key.secrets]) for key in principal.keys] == keys
        assert all(len(one.secret.reveal()) >= SECRET_LEAST for key in principal.keys for one in key.secrets)
        assert [one.expires for one in principal.tokens] == [_end(token) for token in table.get("tokens", ())]
        patterns = [f"{one.kind}:{one.pattern.text}" for one in principal.certificates]
        assert patterns == [_as_compared(text) for text in table.get("certificates", ())]
        for kind in ("clusters", "brokers", "topics", "kv"):
            limit, texts = getattr(principal.limits, kind), table.get("limits", {}).get(kind)
            assert (None if limit is None else limit.texts) == (
                None if texts is None else tuple(sorted(set(texts)))
            )


def _end(table: Mapping[str, Any]) -> float | None:
    expires = table.get("expires")
    return None if expires is None else float(expires.timestamp())


def _as_compared(pattern: str) -> str:
    return pattern.lower() if pattern.startswith("dns:") else pattern


def watched_access_file(data: bytes) -> None:
    """What a running process takes is what a start would take; else what it had stays, and it goes on to look."""
    path = _put(GOOD)
    file = WatchedAccessFile(path)
    before = file.loaded
    _put(data)
    changed = file.poll(time())
    if isinstance(changed, Loaded):
        assert file.loaded is changed
        assert [*changed.principals] == [*load(path).principals]
    else:
        assert file.loaded is before
        assert str(changed) == str(None if _filled(data) == _filled(GOOD) else _refused(path))
    assert file.poll(time()) is None, "one content twice"
    _put(GOOD)
    file.poll(time())
    assert [*file.loaded.principals] == [*before.principals]


def _put(data: bytes) -> Path:
    """Write the files and return the first."""
    for name, content in zip(NAMES, _filled(data), strict=True):
        write(_folder() / name, content)
    return _folder() / NAMES[0]


def _filled(data: bytes) -> list[bytes]:
    """Return the content of each file, that of GOOD where the bytes have none."""
    contents = data.split(BETWEEN, len(NAMES) - 1)
    return contents + GOOD.split(BETWEEN)[len(contents) :]


def _refused(path: Path) -> InvalidAccessFile | None:
    try:
        load(path)
    except InvalidAccessFile as error:
        return error
    return None


@cache
def _folder() -> Path:
    return temporary_folder()
