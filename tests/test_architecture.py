"""Packages import each other in one direction, as docs/architecture.md says, and modules without a circle."""

import ast
from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import Modules, arrows_up, circle, page_with, room_of, rooms


@pytest.fixture(scope="module")
def imports() -> Modules:
    return architecture.modules()


def test_no_module_imports_itself_by_a_detour(imports: Modules) -> None:
    assert circle(imports) == []


def test_imports_point_downwards(imports: Modules) -> None:
    assert arrows_up(imports) == []


def test_the_page_shows_the_imports(imports: Modules) -> None:
    """If it does not: `python -m tests.architecture write`."""
    page = architecture.PAGE.read_text()
    assert page == page_with(page, architecture.table(imports))


def test_a_circle_is_found() -> None:
    looped = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"a"}), "d": frozenset({"a"})}
    assert set(circle(looped)) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("module", "imported", "found"),
    [
        ("worker.service", "registry.plans", []),
        ("registry.plans", "worker.service", ["registry.plans -> worker.service"]),
        ("mqpipeline.job", "registry.keys", ["mqpipeline.job -> registry.keys"]),
        ("mqns.errors", "rocketmq_remoting.codes", []),
    ],
)
def test_an_arrow_up_is_found(module: str, imported: str, found: list[str]) -> None:
    assert arrows_up({module: frozenset({imported})}) == found


def test_imports_of_what_no_package_may_import_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "peer.py"
    file.write_text("def f():\n    import tests.architecture\n    from wsgi import app\n    import json\n")
    assert set(architecture.imports_of(file, {"worker.peer", *architecture.others()})) == {"tests", "wsgi"}
    file.write_text("importlib.import_module('worker.peer')\n__import__('wsgi')\n")
    assert set(architecture.imports_of(file, {"worker.peer", *architecture.others()})) == {
        "worker.peer",
        "wsgi",
    }


def test_imports_of_compiled_code_are_seen(imports: Modules, tmp_path: Path) -> None:
    file = tmp_path / "peer.pyx"
    file.write_text(
        "from libc.string cimport memcpy\ncdef int f():\n    from wsgi import app\n    import tests\n"
    )
    assert set(architecture.imports_of(file, architecture.others())) == {"tests", "wsgi"}
    assert "worker.cache.cached_requests" in imports["worker.transport.epoll"]


def test_every_package_has_its_place() -> None:
    """In BELOW, or among what no package imports."""
    assert architecture.others() == {"container", "distributions", "hatch_build", "tests", "tools", "wsgi"}


def test_classes_of_the_server_are_short() -> None:
    """A class of the server has fewer than 200 lines, and `Service`, which all requests pass, fewer than 150."""
    lines = architecture.class_lines("worker", "registry", "access", "metrics", "traces", "api", "mqnamesrv")
    assert lines["worker.service.Service"] < 150
    assert {name: count for name, count in lines.items() if count >= 200} == {}


def test_what_threads_decode_is_typed_in_one_place() -> None:
    found = architecture.types_read_late(*architecture.SERVER, "mqns", "testbed", "faults", "bench")
    assert {place.partition(":")[0] for place in found} == {"rocketmq_remoting.typed"}


@pytest.mark.parametrize(
    ("call", "reads"),
    [
        ("msgspec.convert(value, Row)", True),
        ("msgspec.json.Decoder(Row)", True),
        ("msgspec.json.decode(text, type=Row)", True),
        ("msgspec.json.decode(text)", False),
    ],
)
def test_calls_that_read_a_type(call: str, reads: bool) -> None:
    parsed = ast.parse(call, mode="eval").body
    assert isinstance(parsed, ast.Call)
    assert architecture.reads_a_type(parsed) is reads


@pytest.mark.parametrize(
    ("module", "room"),
    [("worker.cache.routes", "worker.cache"), ("worker.service", "worker"), ("api.kv", "api")],
)
def test_rooms(module: str, room: str) -> None:
    assert room_of(module) == room


def test_rooms_import_what_their_modules_import() -> None:
    found = rooms(
        {"worker.cache.a": frozenset({"worker.cache.b", "registry.keys"}), "worker.cache.b": frozenset()}
    )
    assert found == {"worker.cache": {"registry"}}


def test_make_check_runs_tests_that_exist() -> None:
    root = Path(__file__).parents[1]
    named = (root / "tests/unit.txt").read_text().split()
    assert named == sorted(named)
    assert [path for path in named if not (root / path).exists()] == []
