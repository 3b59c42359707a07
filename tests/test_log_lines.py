"""Log lines: one naming scheme, and for operators a cause and a next step."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SERVER = ("worker", "registry", "access", "metrics", "traces", "api", "mqnamesrv")
LIBRARIES = ("mqns", "rocketmq_remoting", "mqpipeline", "pyspark_redis_stream")
MODULES = sorted(path for package in (*SERVER, *LIBRARIES) for path in (ROOT / package).rglob("*.py"))
FOR_OPERATORS = {"warning", "warn", "error", "exception", "critical", "fatal", "_missed"}
"""Methods that write lines; the last one hands them on."""
GIVEN = {
    *("worker/jobs/repair_walker.py", "worker/logs/rate_limited_log.py", "worker/watch/ticker.py"),
    *("mqns/broker/lines.py", "mqns/cli/commands.py", "mqns/cli/events.py"),
    *("mqns/cli/server_settings.py", "mqns/cli/watch.py"),
}
ELSEWHERE = {"the store: %s", "the options: %s", "access: %s", "%s%s"}
"""Lines whose argument is a whole sentence: `registry.store.check`, `registry.options.without_effect`,
`access.start_check`, events of the broker agent."""


def calls(path: Path) -> Iterator[ast.Call]:
    tree = ast.parse(path.read_text())
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def lines() -> Iterator[tuple[Path, ast.Call, str | None]]:
    """Calls that write lines which operators are to read, with their texts; None where it is not written there."""
    for path in MODULES:
        for call in calls(path):
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            place = call.args[method == "log" :] + [one.value for one in call.keywords if one.arg == "msg"]
            if method in {*FOR_OPERATORS, "log"} and place:
                yield path, call, text_of(place[0])


def text_of(node: ast.expr) -> str | None:
    """What of a text is written, with `…` for what is put in."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
    return None if texts == ["…"] else "".join(map(str, texts))


def messages() -> Iterator[tuple[Path, str]]:
    """Texts of lines that operators are to read."""
    return ((path, text) for path, _, text in lines() if text is not None)


@pytest.mark.parametrize(
    ("path", "text"), [pytest.param(path, text, id=text[:40]) for path, text in messages()]
)
def test_a_line_names_a_next_step_after_its_cause(path: Path, text: str) -> None:
    """Behind the last semicolon; a line that takes an earlier one back needs none."""
    cause, _, step = text.rpartition("; ")
    assert (cause and step) or text.endswith(" again") or text in ELSEWHERE, path


def test_a_line_is_written_where_it_is_logged() -> None:
    """But for these, which are given it: their callers' are looked at as any other's."""
    elsewhere = {str(path.relative_to(ROOT)) for path, _, text in lines() if text is None}
    assert elsewhere == GIVEN


def test_the_lines_were_found() -> None:
    assert len(list(messages())) > 30


def test_loggers_are_named_after_their_modules() -> None:
    """Spelled out where `python -m` makes the module `__main__`, and those of libraries after a package above, too; the
    root logger is configured, never written to."""
    for path in MODULES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        above = {repr(".".join(parts[:length])) for length in range(1, len(parts))}
        run = 'if __name__ == "__main__"' in path.read_text()
        named = {repr(".".join(parts)) if run else "__name__"} | (above if parts[0] in LIBRARIES else set())
        for call in calls(path):
            function = ast.unparse(call.func)
            if function == "logging.getLogger" and call.args:
                assert ast.unparse(call.args[0]) in named, path
            assert not re.fullmatch(r"logging\.(warn\w*|error|exception|critical|fatal)", function), path
