"""What an operator gave that has no effect: names that are no option, and values of the file that are none. Numbers are
ignored then and flags false, as with Java's options."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from registry.options.catalogue import BY_KEY, OPTIONS_VARIABLE, VARIABLES, parse

PREFIX: Final = "MQNS_"
CONFIG_FILE_VARIABLE: Final = "MQNS_CONFIG_FILE"
KNOWN: Final = frozenset({*VARIABLES, OPTIONS_VARIABLE, CONFIG_FILE_VARIABLE})
OF_OTHER_PROGRAMS: Final = re.compile(
    r"MQNS_(PIPELINE_\w+|HTTP|TOKEN|TOKEN_FILE|ACCESS_KEY|SECRET_KEY|SECRET_KEY_FILE|SECURITY_TOKEN|TLS_KEY_PASSWORD)"
)
"""Variables of `mqns` and `mqpipeline`."""
OF_SERVICES: Final = re.compile(
    r"MQNS_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Kubernetes makes them for a Service whose name begins with `mqns`."""
SERVICE_PORT: Final = re.compile(r"MQNS_(\w+_)?PORT")
SERVICE_URL: Final = re.compile(r"(tcp|udp|sctp)://")
NEAR: Final = 0.8


def without_effect(file: Mapping[str, str], env: Mapping[str, str]) -> list[str]:
    """Return a sentence for each."""
    return [*_of_file(file), *_of_environment(env)]


def _of_file(file: Mapping[str, str]) -> Iterator[str]:
    for key, text in file.items():
        option = BY_KEY.get(key)
        if option is None:
            yield _unknown(key, BY_KEY)
        elif parse(option, text) is None:
            as_java = "" if option.group == "own" else ", as Java does"
            yield f"{key}={text} is ignored{as_java}: not a number that {key} can be; correct the file"
        elif option.type == "bool" and text.lower() not in ("true", "false"):
            as_java = "" if option.group == "own" else ", as Java reads it"
            yield f"{key}={text} counts as false{as_java}: it is neither true nor false; correct the file"


def _of_environment(env: Mapping[str, str]) -> Iterator[str]:
    for name, text in env.items():
        if name.startswith(PREFIX) and name not in KNOWN and not _is_of_others(name, text):
            yield _unknown(name, KNOWN, PREFIX)


def _is_of_others(name: str, text: str) -> bool:
    if SERVICE_PORT.fullmatch(name) and SERVICE_URL.match(text):
        return True
    return bool(OF_OTHER_PROGRAMS.fullmatch(name) or OF_SERVICES.fullmatch(name))


def _unknown(name: str, known: Iterable[str], prefix: str = "") -> str:
    return f"{name} is no option and has no effect; {advice(name, known, prefix)}"


def advice(name: str, known: Iterable[str] = BY_KEY, prefix: str = "") -> str:
    """Return which of the known names is meant, or where all are; `prefix` is what they have in common, so that it
    makes no two alike."""
    folded = {option.removeprefix(prefix).lower(): option for option in known}
    near = get_close_matches(name.removeprefix(prefix).lower(), folded, n=1, cutoff=NEAR)
    return f"did you mean {folded[near[0]]}?" if near else "docs/options.md lists all"
