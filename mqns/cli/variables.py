"""Environment variables of `mqns`, and those that were probably meant to be one."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from mqns.addresses.sources import ENVIRONMENT
from mqns.cli.http_api import VARIABLE
from mqns.cli.settings import SECRET_KEY_FILE, TLS_KEY_PASSWORD, TOKEN, TOKEN_FILE
from mqns.remoting.credentials import ACCESS_KEY, SECRET_KEY, SECURITY_TOKEN

PREFIX: Final = "MQNS_"
OWN: Final = (
    *(VARIABLE, TOKEN, TOKEN_FILE, ACCESS_KEY, SECRET_KEY, SECRET_KEY_FILE, SECURITY_TOKEN),
    TLS_KEY_PASSWORD,
)
MEANT: Final = {name.removeprefix(PREFIX): name for name in (*OWN, ENVIRONMENT)} | {"NAMESRV": ENVIRONMENT}
NEAR: Final = 0.85
"""Below it are options of the server, whose variables begin as ours do."""


def misspelt(names: Iterable[str]) -> list[str]:
    """Return a sentence for each variable that is none of `mqns` and has nearly the name of one."""
    return [
        f"{name} is no variable of mqns and has no effect; did you mean {MEANT[near[0]]}?"
        for name in names
        if name.startswith(PREFIX) and name not in OWN
        if (near := get_close_matches(name.removeprefix(PREFIX).upper(), MEANT, n=1, cutoff=NEAR))
    ]
