"""Names that peers choose, in all texts of all findings: none ends its word of a command."""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from mqns.cli.doctor import store
from mqns.cli.doctor.facts import Facts, HttpFacts, OwnFinding
from mqns.cli.doctor.findings import Finding
from registry.doctor import catalogue
from registry.doctor.checks import Seen
from registry.doctor.findings import finding as own_finding
from registry.keys import Keys
from tests.mqns.cli.doctor.rows import ADDRESSES, QUEUES, A, B, server
from tests.mqns.cli.doctor.test_rules import all_facts, all_findings

MARK = "pwned"
HOSTILE = (
    f"b;touch /tmp/{MARK};",
    f"$(touch /tmp/{MARK})",
    f"it's `{MARK}`",
    f'"{MARK}" && x',
    f"-{MARK} -x",
    f"{MARK}\nx",
    f'{MARK}\'"$MQNS_HTTP"',
)
NAMES = {*ADDRESSES, *QUEUES, "T", "TC", "TX", "TY", "HA", "HB", "c1", "c2", "x", "y", "gone", "b", "N", "k"}
"""What is called so in the rows of the other tests."""
WORD = r"""(?:'[^']*'|"[^"]*"|[^\s'"`;&|<>()$\\,#*?~!])+"""
COMMAND = re.compile(rf"\b(?:mqns|mqadmin|curl|redis-cli|nc|getent|pgrep)(?: {WORD})+")
VARIABLES = {"REDIS_URL": "$REDIS_URL", "MQNS_HTTP": "$MQNS_HTTP"}
"""That a shell reads as they are spelt, as `shlex` does."""


def renamed(value: Any, name: str) -> Any:
    """Return facts with a name in place of each of NAMES."""
    if isinstance(value, msgspec.Struct):
        members = {field: renamed(getattr(value, field), name) for field in value.__struct_fields__}
        return type(value)(**members)
    if isinstance(value, Mapping):
        return {renamed(key, name): renamed(member, name) for key, member in value.items()}
    if isinstance(value, tuple | frozenset):
        return type(value)(renamed(member, name) for member in value)
    if not isinstance(value, str) or value not in NAMES:
        return value
    return f"{name}{value}" if name.startswith("-") else f"{value}{name}"


def findings(name: str) -> list[Finding]:
    """All findings of `mqns doctor` where all is called so, those of the server among them."""
    facts = [renamed(one, name) for one in all_facts()]
    facts.append(Facts((server(A, config={name: "1"}), server(B, config={name: "2"}))))
    wiped = {"TA": {"broker-a": (8, 8, 4)}, "TB": {"broker-a": (8, 8, 4)}}
    order = {"TA": "other:1;x", "TB": "broker-a:9"}
    orders = server(A, queues=wiped, kv={"ORDER_TOPIC_CONFIG": order})
    facts.append(renamed(Facts((orders,)), name))
    facts.append(Facts((server(A, {"b": {0: f"{name}:1"}}, {}),)))
    return [*all_findings(facts), *store.check(Facts((server(A, http=own(name)),)))]


def own(name: str) -> HttpFacts:
    """An HTTP side that has all of its findings about this name."""
    of_server = [own_finding(Keys(), Seen(rule, "what", (name,))) for rule in catalogue.RULES]
    seen = (
        OwnFinding(one.check, one.severity, one.what, one.why, one.advice, one.command, one.subjects)
        for one in of_server
    )
    return HttpFacts("http://a:p&q@ns:8080", findings=tuple(seen))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_ends_its_word(name: str) -> None:
    """Neither in a command nor in an advice, as `shlex` and a real shell read them; an advice has names in commands
    alone."""
    found = findings(name)
    texts = [text for one in found for text in (one.advice, one.command)]
    for text in texts:
        assert MARK not in COMMAND.sub("", text), text
    commands = [command for text in texts for command in COMMAND.findall(text)]
    read = [shlex.split(command) for command in commands]
    named = {
        one.check
        for one in found
        for words in map(shlex.split, COMMAND.findall(one.advice))
        if MARK in str(words)
    }
    assert named == {
        "broker-wiped", "queues-differ", "kv-differs", "name-server-options",
        "order-malformed", "order-broker-unknown",
    }  # fmt: skip
    assert in_a_shell(commands) == read


def in_a_shell(commands: list[str]) -> list[list[str]]:
    """Return the words of each command as `sh` has them."""
    script = "\n".join(f"printf '%s\\0' {command}; printf '\\1'" for command in commands)
    ended = subprocess.run(
        ["sh", "-euc", script],
        env=os.environ | VARIABLES,
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return [words.split("\0")[:-1] for words in ended.stdout.split("\1")[:-1]]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_texts_of_the_server_itself(name: str) -> None:
    for rule in catalogue.RULES:
        one = own_finding(Keys(), Seen(rule, "what", (name,)))
        assert MARK not in one.advice + COMMAND.sub("", one.command)
