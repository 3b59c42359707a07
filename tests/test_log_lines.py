"""Log lines of the server: one naming scheme, and for operators a cause and a next step."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(
    path for room in ("worker", "registry", "api", "mqnamesrv") for path in (ROOT / room).rglob("*.py")
)
FOR_OPERATORS = {"warning", "error", "exception", "critical"}
ELSEWHERE = {"the store: %s", "the options: %s"}
"""Lines whose argument is a whole sentence: `registry.store.check`, `registry.options.without_effect`."""


def calls(path: Path) -> Iterator[ast.Call]:
    tree = ast.parse(path.read_text())
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def messages() -> Iterator[tuple[Path, str]]:
    """Constant texts of lines that operators are to read."""
    for path in MODULES:
        for call in calls(path):
            if isinstance(call.func, ast.Attribute) and call.func.attr in FOR_OPERATORS and call.args:
                text = call.args[0]
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield path, text.value


@pytest.mark.parametrize(
    ("path", "text"), [pytest.param(path, text, id=text[:40]) for path, text in messages()]
)
def test_a_line_names_a_next_step_after_its_cause(path: Path, text: str) -> None:
    """Behind the last semicolon; a line that takes an earlier one back needs none."""
    assert "; " in text or text.endswith(" again") or text in ELSEWHERE, path


def test_the_lines_were_found() -> None:
    assert len(list(messages())) > 30


def test_loggers_are_named_after_their_modules() -> None:
    """Spelled out where `python -m` makes the module `__main__`; the root logger is configured, never written to."""
    for path in MODULES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        run = 'if __name__ == "__main__"' in path.read_text()
        for call in calls(path):
            if ast.unparse(call.func) == "logging.getLogger" and call.args:
                assert ast.unparse(call.args[0]) == (repr(module) if run else "__name__"), path
