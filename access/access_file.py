"""The file of the principals (option accessFile), read into `Principals` (docs/access.md has its format)."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from access.access_tables import InvalidTable, KeyTable, LimitsTable, PrincipalTable, TokenTable, read_tables
from access.credentials import AclKey, AclSecret, CertificatePattern, TokenHash
from access.description import Description, described
from access.limits import Limits
from access.one_line import one_line
from access.patterns import Patterns
from access.principal import Principal
from access.principals import DuplicateCredential, Principals
from access.private_files import FileRefused, PrivateFiles
from access.roles import Role
from access.tokens import digest_of, id_of
from registry.secret import Secret

__all__ = ["InvalidAccessFile", "Loaded", "load"]

FILE_BYTES: Final = 1 << 20
SECRET_BYTES: Final = 4096
ERROR_MOST: Final = 1_000
"""Characters of an error behind the path: it may show any text of the file."""
WILD_CERTIFICATES_MOST: Final = 1_000
"""Certificate patterns with `*` of all principals: each is compared with each name of a certificate."""
SECRET_LEAST: Final = 8
SECRET_GOOD: Final = 16
NO_TOKEN: Final = "has no token, mqns_ID_SECRET; docs/access.md says how to make one"
OPERATE: Final = frozenset({Role.OPERATOR, Role.ADMIN})
SERVE: Final = frozenset({Role.READER, Role.BROKER})


class InvalidAccessFile(Exception):
    """Why the file is not taken, in one line: its path, the principal, the field and the reason; never a secret."""


class Loaded(NamedTuple):
    """Principals of a file, and what operators should know of it."""

    principals: Principals
    warnings: tuple[str, ...] = ()
    description: Description = MappingProxyType({})


def load(path: Path, files: PrivateFiles | None = None) -> Loaded:
    """Return the principals of a file. Raises InvalidAccessFile. `files` reads it, and those that it names.

    A file of 1 MB takes a second of a processor."""
    reader = _Reader(path.parent, files or PrivateFiles())
    try:
        principals = Principals(reader.principals(read_tables(reader.files.read(path, FILE_BYTES))))
    except (InvalidTable, FileRefused, DuplicateCredential) as error:
        raise InvalidAccessFile(f"{path}: {one_line(str(error), ERROR_MOST)}") from None
    wild = sum(not pattern.pattern.is_exact for one in principals for pattern in one.certificates)
    if wild > WILD_CERTIFICATES_MOST:
        raise InvalidAccessFile(
            f"{path}: {wild} certificate patterns with *, more than {WILD_CERTIFICATES_MOST}"
        )
    warnings = tuple(f"{path}: {warning}" for warning in reader.warnings)
    return Loaded(principals, warnings, described(principals))


class _Reader:
    """Makes principals of their tables, with the secrets in files."""

    def __init__(self, folder: Path, files: PrivateFiles) -> None:
        self._folder = folder
        self.files = files
        self.warnings: list[str] = []

    def principals(self, tables: Mapping[str, PrincipalTable]) -> Iterator[Principal]:
        """Yield each principal. Raises InvalidTable."""
        for name, table in tables.items():
            try:
                yield self._principal(name, table)
            except InvalidTable as error:
                raise InvalidTable(f"principal {name}", str(error)) from None

    def _principal(self, name: str, table: PrincipalTable) -> Principal:
        roles = frozenset(table.roles)
        if table.keys and roles & OPERATE and roles & SERVE:
            raise InvalidTable(
                "roles",
                "with an ACL key there is reader or broker, or operator or admin, not both: what a client signs could"
                " be sent as an operator's request",
            )
        return Principal(
            name,
            roles,
            _limits(table.limits),
            tuple(self._key(name, f"keys[{at}]", key) for at, key in enumerate(table.keys)),
            tuple(_certificate(f"certificates[{at}]", text) for at, text in enumerate(table.certificates)),
            tuple(self._token(f"tokens[{at}]", token) for at, token in enumerate(table.tokens)),
        )

    def _key(self, name: str, field: str, table: KeyTable) -> AclKey:
        if not table.access_key.isprintable():
            raise InvalidTable(f"{field}.accessKey", "has characters that cannot be printed")
        secrets = []
        for at, of in enumerate(table.secrets):
            place = f"{field}.secrets[{at}]"
            secret = self._secret(f"{place}.file", of.file)
            if len(secret) < SECRET_LEAST:
                raise InvalidTable(f"{place}.file", f"{of.file!r} has under {SECRET_LEAST} characters")
            if len(secret) < SECRET_GOOD:
                self.warnings.append(
                    f"principal {name}: {place}.file: {of.file!r} has under {SECRET_GOOD} characters"
                )
            secrets.append(AclSecret(of.file, Secret(secret), _end(of.expires)))
        return AclKey(table.access_key, tuple(secrets))

    def _token(self, field: str, table: TokenTable) -> TokenHash:
        expires = _end(table.expires)
        if table.file is not None and table.id is None and table.hash is None:
            token = self._secret(f"{field}.file", table.file)
            if (token_id := id_of(token)) is None:
                raise InvalidTable(f"{field}.file", f"{table.file!r} {NO_TOKEN}")
            return TokenHash(token_id, digest_of(token), expires)
        if table.file is None and table.id is not None and table.hash is not None:
            return TokenHash(table.id, Secret(table.hash.rpartition(":")[2]), expires)
        raise InvalidTable(field, "has either file, or id and hash")

    def _secret(self, field: str, file: str) -> str:
        """Return the text in a file, without the end of its line. Raises InvalidTable."""
        try:
            text = self.files.read(self._folder / file, SECRET_BYTES).decode().rstrip("\r\n")
        except FileRefused as refused:
            raise InvalidTable(field, f"{file!r} {refused}") from None
        except UnicodeDecodeError:
            raise InvalidTable(field, f"{file!r} is not UTF-8") from None
        if not text.isprintable():
            raise InvalidTable(field, f"{file!r} has several lines, or characters that cannot be printed")
        return text


def _limits(table: LimitsTable) -> Limits:
    clusters, brokers, topics, kv = (
        None if texts is None else Patterns.of(texts)
        for texts in (table.clusters, table.brokers, table.topics, table.kv)
    )
    return Limits(clusters, brokers, topics, kv, table.limit_reads)


def _certificate(field: str, text: str) -> CertificatePattern:
    try:
        return CertificatePattern.of(text)
    except ValueError as error:
        raise InvalidTable(field, f"{text!r}: {error}") from None


def _end(expires: datetime | None) -> float | None:
    return None if expires is None else expires.timestamp()
