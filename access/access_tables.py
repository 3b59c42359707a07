"""The tables of the file of the principals: TOML, checked for form."""

import re
import tomllib
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from access.roles import Role
from registry.access_tokens import PRINCIPAL_FORM, PRINCIPAL_NAME
from rocketmq_remoting.typed import converted

__all__ = [
    "InvalidTable",
    "KeyTable",
    "LimitsTable",
    "PrincipalTable",
    "SecretTable",
    "TokenTable",
    "read_tables",
]

PRINCIPALS_MOST: Final = 10_000
SHOWN: Final = 80
LONG_KEY: Final = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""")
"""Over 32 words with dots between them: no key here has more than 4, and tomllib takes the square of their number."""

CURES: Final = {
    "Invalid enum value": f"one of {', '.join(Role)}",
    "Expected `datetime": "a time with its offset to UTC, as 2027-01-01T00:00:00Z",
    "Invalid RFC3339": "a time with its offset to UTC, as 2027-01-01T00:00:00Z",
    "Expected `array | null`, got": 'a list, as ["b-*"]',
    "Expected `array`, got": 'a list, as ["b-*"]',
}
"""What is expected, by how msgspec begins to say what is wrong."""

MISSING: Final = "missing required"
MEMBER: Final = re.compile(rf"Object (?P<is>{MISSING}|contains unknown) field `(?P<name>.*)`", re.DOTALL)
PLACED: Final = re.compile(r"(?P<reason>.*) - at `\$\.(?P<place>[^`]*)`", re.DOTALL)
INDEX: Final = re.compile(r"\[\d+\]$")
"""How msgspec says what is wrong, and where."""

Time = Annotated[datetime, Meta(tz=True)]
Text = Annotated[str, Meta(min_length=1, max_length=1024)]
Texts = Annotated[list[Text], Meta(max_length=1000)]


class InvalidTable(Exception):
    """What is wrong where; the text has no secret, since none is in the file."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")


class _Table(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A table of the file."""


class SecretTable(_Table):
    """A secret of an ACL key, in a file."""

    file: Text
    expires: Time | None = None


class KeyTable(_Table):
    """An ACL key."""

    access_key: Text
    secrets: Annotated[list[SecretTable], Meta(min_length=1, max_length=2)]


class TokenTable(_Table):
    """A bearer token: in a file, or by id and hash."""

    file: Text | None = None
    id: Annotated[str, Meta(pattern="^[a-z0-9]{8}$")] | None = None
    hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")] | None = None
    expires: Time | None = None


class LimitsTable(_Table):
    """Patterns of names."""

    clusters: Texts | None = None
    brokers: Texts | None = None
    topics: Texts | None = None
    kv: Texts | None = None
    limit_reads: bool = False


class PrincipalTable(_Table):
    """A principal."""

    roles: Annotated[list[Role], Meta(min_length=1)]
    limits: LimitsTable = msgspec.field(default_factory=LimitsTable)
    keys: Annotated[list[KeyTable], Meta(max_length=10)] = []
    certificates: Annotated[list[Text], Meta(max_length=100)] = []
    tokens: Annotated[list[TokenTable], Meta(max_length=100)] = []


TABLES: Final[dict[str, type[_Table]]] = {
    "": PrincipalTable,
    "limits": LimitsTable,
    "keys": KeyTable,
    "secrets": SecretTable,
    "tokens": TokenTable,
}
"""By the member that has them."""


def read_tables(content: bytes) -> dict[str, PrincipalTable]:
    """Return the table of each principal, by name. Raises InvalidTable."""
    whole = _toml(content)
    if unknown := sorted(whole.keys() - {"principals"}):
        raise InvalidTable(_shown(unknown[0]), "is unknown; there is [principals.NAME] only")
    tables = whole.get("principals")
    if not isinstance(tables, dict):
        raise InvalidTable("principals", "is no table; there is [principals.NAME]")
    if len(tables) > PRINCIPALS_MOST:
        raise InvalidTable("principals", f"are more than {PRINCIPALS_MOST}")
    return {name: _principal(name, table) for name, table in tables.items()}


def _toml(content: bytes) -> dict[str, Any]:
    try:
        text = content.decode()
        if LONG_KEY.search(text):
            raise InvalidTable("TOML", "has over 32 words with dots between them")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InvalidTable(f"byte {error.start}", "is not UTF-8") from None
    except RecursionError:
        raise InvalidTable("TOML", "is nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidTable("TOML", str(error)) from None
    except (ValueError, OverflowError):
        raise InvalidTable("TOML", "has a number or time that is too long") from None


def _principal(name: str, table: Any) -> PrincipalTable:
    if not PRINCIPAL_NAME.fullmatch(name):
        raise InvalidTable(f"principal {_shown(name)}", f"a name {PRINCIPAL_FORM}")
    if not isinstance(table, dict):
        raise InvalidTable(f"principal {name}", f"is no table; there is [principals.{name}]")
    try:
        return converted(table, PrincipalTable)
    except msgspec.ValidationError as error:
        raise InvalidTable(f"principal {name}", _reason(error)) from None
    except RecursionError:
        raise InvalidTable(f"principal {name}", "is nested too deep") from None


def _reason(error: msgspec.ValidationError) -> str:
    """Return which member of a principal is wrong, and why."""
    found = PLACED.fullmatch(str(error))
    reason, of_table = (str(error), "") if found is None else (found["reason"], found["place"])
    if member := MEMBER.fullmatch(reason):
        field = f"{of_table}.{member['name']}" if of_table else member["name"]
        if member["is"] == MISSING:
            return f"{field}: is required"
        owner = INDEX.sub("", of_table).rpartition(".")[2]
        table = TABLES.get(owner, PrincipalTable)  # none has it where the text of a name looks like a place
        return f"{field}: is unknown; there are {', '.join(table.__struct_encode_fields__)}"
    return f"{of_table}: {_cured(reason)}"


def _cured(reason: str) -> str:
    """Add to what msgspec says what it has to be instead."""
    cures = (cure for begin, cure in CURES.items() if reason.startswith(begin))
    return f"{reason}; it is {cure}" if (cure := next(cures, None)) else reason


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
