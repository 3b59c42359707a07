"""Both catalogues of findings: four things of each, in words, and commands that exist."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
import typer
from typer.main import get_command

from api.app import create_app
from mqns.cli import doctor
from mqns.cli.app import app
from mqns.cli.doctor import addresses, brokers, differences, discovery, servers, serving, topics
from mqns.cli.doctor.facts import Facts, HttpFacts, Probe
from mqns.cli.doctor.findings import Finding, Severity
from mqns.cli.doctor.http_side import NOT_FOLLOWED, STORE_UNAVAILABLE
from mqns.cli.doctor.rules import RULES, command_of, explained
from mqns.cli.doctor.store import FOLLOWER_LATE, LEASE_ENDING, OF_ROUTES
from registry.doctor import catalogue, findings
from registry.doctor.checks import Seen
from registry.keys import Keys
from registry.options.catalogue import Options
from tests.mqns.cli.doctor import test_checks, test_serving
from tests.mqns.cli.doctor.rows import A, B, server

PROGRAMS = {"redis-cli", "curl", "nc", "getent", "pgrep"}
"""Of Redis, and of every Linux; `mqns` is ours."""
REDIS = {"ping", "type", "info", "acl", "time", "client", "config", "hgetall", "zrange", "role"}
OURS = re.compile(r"\bmqns ([a-z]+(?: (?:set|get|add|wipe|delete))?)\b")
RULE = re.compile(r"[a-z]+(?:-[a-z]+)+")
HOSTILE = "$(reboot); x"


def own_command(check: str) -> str:
    return findings.finding(Keys(), Seen(check, "what", ("x",))).command


def finding(check: str, subject: str = "10.0.0.1:10911", *more: str) -> Finding:
    return Finding(Severity.ERROR, check, "what", (A, B), (subject, *more), "advice")


COMMANDS = {
    **{check: command_of(finding(check), "http://ns:8080") for check in RULES},
    **{f"{check} without HTTP": command_of(finding(check), None) for check in RULES},
    **{check: own_command(check) for check in catalogue.RULES},
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_each_command_exists(command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "mqns":
        parse(arguments)
        return
    assert program in PROGRAMS
    if program == "redis-cli":
        assert arguments[:2] == ["-u", "$REDIS_URL"]
        assert arguments[2] in REDIS
    if program == "curl":
        path = arguments[-1]
        path = path[re.search(r"/(v1/|readyz|rocketmq/)", path).start() :]  # type: ignore[union-attr]
        create_app(Options(), redis=redis_py.Redis()).url_map.bind("ns").match(path, method="GET")


def parse(arguments: list[str]) -> None:
    """Parse arguments as `mqns` does, without running the command."""
    command: Any = get_command(app)
    context = None
    while True:
        context = command.make_context(command.name, arguments, parent=context)
        if not isinstance(command, typer.core.TyperGroup):
            return
        arguments = [*context._protected_args, *context.args]
        name, command, arguments = command.resolve_command(context, arguments)
        assert command is not None, name


def test_a_command_that_does_not_exist_is_noticed() -> None:
    for arguments in (["brokerz"], ["config", "got", "x"], ["routes", "--http", "x", "T"], ["routes"]):
        with pytest.raises(Exception, match=r"(?i)no such|missing"):
            parse(arguments)


@pytest.mark.parametrize("check", RULES)
def test_names_of_peers_are_words_of_a_shell(check: str) -> None:
    """A broker may be called as a command is; and as an option."""
    shown = command_of(finding(check, HOSTILE), "http://ns:8080")
    words = shlex.split(shown, comments=False)
    rest = re.sub(r"'[^']*'", "", shown)
    assert "$(" not in rest, words
    assert "reboot" not in rest.replace("%24%28reboot%29", "")
    assert "; x" not in rest
    if "{subject}" in RULES[check].command:
        assert command_of(finding(check, "-x"), None).endswith("-- -x")


def test_every_rule_of_a_check_is_in_the_catalogue() -> None:
    """And none is in both catalogues, but what routes show too, and workers."""
    sources = [path for path in Path(doctor.__file__).parent.glob("*.py") if path.name != "rules.py"]
    assert {rule for path in sources for rule in rules_in(path)} == RULES.keys() | {brokers.HOLD}
    assert brokers.HOLD in catalogue.RULES
    assert RULES.keys() & catalogue.RULES.keys() == OF_ROUTES | {FOLLOWER_LATE, LEASE_ENDING}


def rules_in(path: Path) -> Iterator[str]:
    """The texts of a source that are nothing but small words with hyphens, kinds of problems left out."""
    kinds = (STORE_UNAVAILABLE, NOT_FOLLOWED)
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Constant(value=str(text)) if RULE.fullmatch(text) and text not in kinds:
                yield text


def all_facts() -> list[Facts]:
    """The rows of the other tests."""
    rows = [*test_checks.SERVERS, *test_checks.DIFFERENCES, *test_checks.BROKERS, *test_checks.TOPICS]
    facts = [Facts(tuple(row[1])) for row in rows]
    facts += [Facts((server(A, **row[1]),)) for row in test_serving.SERVING]
    facts += [
        Facts((server(A, {"b": {0: address}}, {}, ips=(ip,)),), {} if probe is None else {address: probe})
        for address, probe, ip, _ in test_checks.ADDRESS
    ]
    facts.append(Facts((server(A, http=HttpFacts("http://ns:8080", failure="refused")),)))
    lists = server(A, http=HttpFacts("http://ns:8080", listed=("10.0.0.1:9876",)))
    facts.append(Facts((lists,), listed={"10.0.0.1:9876": Probe(("10.0.0.1",), "refused")}))
    return facts


def all_findings(facts: list[Facts]) -> list[Finding]:
    """What all checks find in these."""
    checks = (*(m.check for m in (servers, serving, discovery, differences, addresses, brokers, topics)),)
    return [found for one in facts for check in checks for found in explained(check(one), one)]


def test_each_finding_says_four_things() -> None:
    found = all_findings(all_facts())
    for one in found:
        for said in (one.what, one.why, one.advice, one.command):
            assert said.strip(), one
        for words in OURS.findall(one.advice):
            assert exists(words), one.advice
    unseen = set(RULES) - {one.check for one in found}
    assert unseen <= {"broker-clock-ahead", "lease-ending", *order_rules()}


def order_rules() -> set[str]:
    return {rule for rule in RULES if rule.startswith("order-")}


@pytest.mark.parametrize("rule", catalogue.RULES.values(), ids=catalogue.RULES)
def test_each_rule_of_the_server_says_three_things_of_its_own(rule: catalogue.Rule) -> None:
    for sentence in (rule.why, rule.advice):
        assert sentence.endswith(".")
        assert all(map(exists, OURS.findall(sentence)))


def exists(words: str) -> bool:
    """Return whether `mqns` has this command, a group's in two words."""
    first, _, second = words.partition(" ")
    commands: Any = get_command(app)
    command = commands.commands.get(first)
    return command is not None and (not second or second in getattr(command, "commands", {}))
