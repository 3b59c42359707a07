"""The pipeline is a distribution of its own: it runs where the name server is not installed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import mqpipeline

PACKAGE = Path(mqpipeline.__file__).parent
OTHERS = {"api", "mqnamesrv", "mqns", "registry", "rocketmq_remoting", "testbed", "tests", "worker"}


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_pipeline_imports_nothing_of_the_name_server() -> None:
    imports = {
        (str(path.relative_to(PACKAGE)), name.partition(".")[0])
        for path in PACKAGE.rglob("*.py")
        for name in imported(path.read_text())
    }
    assert {(path, package) for path, package in imports if package in OTHERS} == set()
    assert ("job_queue.py", "redis") in imports
