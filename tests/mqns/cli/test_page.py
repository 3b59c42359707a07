"""docs/cli.md: its examples, run in their order, print what it shows; its list of findings is that of the tests."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from mqns.cli.doctor.rules import RULES
from registry.doctor import catalogue
from testbed.scene import Scene
from tests.mqns.cli.conftest import address, http_side, run
from tests.mqns.cli.doctor import test_checks, test_serving
from tests.registry.doctor import test_checks as test_own_checks

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = ("127.0.0.1:9876", "127.0.0.1:9877", "http://127.0.0.1:8080")
VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\S*"), "TIME"),
    (re.compile(r"\b(http|wire):127\.0\.0\.1:\d+"), r"\1:PEER"),
    (re.compile(r"\d+\.\d{3}"), "MS"),
    (re.compile(r"(Millis\": )[\d.]+"), r"\1MS"),
    (re.compile(r"(V5_5_0 +)\d+ +"), r"\1MS "),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
)
RULE = re.compile(r"`([a-z]+(?:-[a-z]+)*)`")


def examples() -> Iterator[tuple[str, str]]:
    """Each command and the text below it."""
    for block in BLOCK.findall(PAGE.read_text()):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, text = example.partition("\n")
            yield command, text


def steady(text: str) -> str:
    """Without what differs from run to run, such as the width of a column that holds a port."""
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    return "\n".join(re.sub(" +", " ", line).rstrip() for line in text.splitlines())


def printed(command: str, actual: list[str]) -> str:
    """What a command prints on both streams, with the page's addresses."""
    for shown, server in zip(SHOWN, actual, strict=True):
        command = command.replace(shown, server)
    name, *arguments = shlex.split(command)
    assert name == "mqns"
    ended = run(*arguments, env={"NAMESRV_ADDR": actual[0]})
    text = ended.out + ended.err
    for shown, server in zip(SHOWN, actual, strict=True):
        text = text.replace(server, shown)
    return text


def test_examples_print_what_the_page_shows(scenes: list[Scene]) -> None:
    first, second = scenes
    first.f3()
    second.f1()
    actual = [*(address(scene.server) for scene in scenes), http_side(first.server)]
    shown = list(examples())
    assert len(shown) > 15
    for command, text in shown:
        assert steady(printed(command, actual)) == steady(text), command


def test_every_finding_is_on_the_page_and_has_a_row() -> None:
    page = PAGE.read_text()
    table = page[page.index("| finding | severity |") : page.index("Not checked, since")]
    listed = {rule for line in table.strip().splitlines() for rule in RULE.findall(line.split("|")[1])}
    assert listed == RULES.keys() | catalogue.RULES.keys()
    rows = "".join(
        Path(str(tests.__file__)).read_text() for tests in (test_checks, test_serving, test_own_checks)
    )
    assert [rule for rule in listed if f'"{rule}"' not in rows] == []
