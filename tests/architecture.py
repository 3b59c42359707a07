"""Imports between our packages and rooms, from the code; docs/architecture.md has the table.

python -m tests.architecture         print the table
python -m tests.architecture write   write it into the page
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- imports: `python -m tests.architecture write` -->"
END: Final = "<!-- end of imports -->"
PARTED: Final = ("registry", "worker", "mqns", "mqpipeline")
"""Packages whose folders are rooms of their own."""

SERVER: Final = ("rocketmq_remoting", "registry", "access", "metrics", "traces", "worker", "api", "mqnamesrv")
BELOW: Final[Mapping[str, tuple[str, ...]]] = {
    "rocketmq_remoting": (),
    "registry": ("rocketmq_remoting",),
    "pyspark_redis_stream": (),
    "mqpipeline": ("pyspark_redis_stream",),
    "access": ("rocketmq_remoting", "registry", "worker.logs"),
    "metrics": ("rocketmq_remoting", "registry", "worker.logs"),
    "traces": ("registry", "worker.logs"),
    "worker": ("rocketmq_remoting", "registry", "access", "metrics", "traces"),
    "api": (
        *("rocketmq_remoting", "registry", "access", "metrics", "traces", "worker.logs"),
        *("worker.background", "worker.watch.follower"),  # the one follower of the stream, for watchers too
        "mqns.event_words",  # the console says an entry as `mqns events` does; mqns is installed with the server
    ),
    "mqnamesrv": ("rocketmq_remoting", "registry", "access", "metrics", "traces", "worker"),
    "mqns": ("rocketmq_remoting",),
    "testbed": (*SERVER, "mqns"),
    "bench": (*SERVER, "mqns", "mqpipeline", "pyspark_redis_stream", "testbed"),
    "faults": (*SERVER, "mqns", "testbed", "bench"),
}
"""Each package and what it may import: packages, rooms, modules. Tests may import all."""

BY_NAME: Final = ("import_module", "__import__")
Modules = Mapping[str, frozenset[str]]


def modules() -> Modules:
    """Return each module of ours with those of ours that it imports, at its top or in a function."""
    paths = {
        _name(path): path
        for package in BELOW
        for suffix in ("*.py", "*.pyx")
        for path in sorted((ROOT / package).rglob(suffix))
    }
    known = {*paths, *others()}
    return {name: frozenset(imports_of(path, known)) - {name} for name, path in paths.items()}


def others() -> frozenset[str]:
    """Return the names at the top of the tree that BELOW has not, such as `tests` and `wsgi`: nothing imports them."""
    files = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in ROOT.glob("[!.]*.py")}
    folders = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("[!.]*/*.py")}
    return frozenset(files | folders) - BELOW.keys()


def room_of(module: str) -> str:
    """`worker.cache.routes` is in `worker.cache`, `worker.service` in `worker`, `api.kv` in `api`."""
    package, *rest = module.split(".")
    return f"{package}.{rest[0]}" if package in PARTED and len(rest) > 1 else package


def rooms(imports: Modules) -> dict[str, frozenset[str]]:
    """Return each room with the other rooms that it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, imported in imports.items():
        found[room_of(module)].update(map(room_of, imported))
    return {room: frozenset(others - {room}) for room, others in found.items()}


def circle(imports: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the modules of an import circle, none without one."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def arrows_up(imports: Modules) -> list[str]:
    """Return the imports that BELOW does not list, as `module -> module`."""
    return sorted(
        f"{module} -> {other}"
        for module, imported in imports.items()
        for other in imported
        if not any(_is_in(other, allowed) for allowed in (_package(module), *BELOW[_package(module)]))
    )


def class_lines(*packages: str) -> dict[str, int]:
    """Return each class of these packages, as `package.module.Class`, with its number of lines."""
    return {
        f"{_name(path)}.{node.name}": node.end_lineno - node.lineno + 1
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.end_lineno is not None
    }


def types_read_late(*packages: str) -> list[str]:
    """Return the calls in functions, as `module:line`, by which msgspec reads a type when it is first used: not safe
    in threads, as rocketmq_remoting/typed.py says."""
    return [
        f"{_name(path)}:{call.lineno}"
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and reads_a_type(call)
    ]


def reads_a_type(call: ast.Call) -> bool:
    """Whether it is one of msgspec's."""
    called = ast.unparse(call.func)
    typed = any(keyword.arg == "type" for keyword in call.keywords)
    return called in {"msgspec.convert", "msgspec.json.Decoder"} or (
        called == "msgspec.json.decode" and typed
    )


def table(imports: Modules) -> str:
    """Return the table of the page."""
    imported = rooms(imports)
    order = {package: place for place, package in enumerate(BELOW)}
    lines = ["| room | holds | imports |", "|---|---|---|"]
    for room in sorted(imported, key=lambda name: (order[_package(name)], name)):
        listed = sorted(imported[room], key=lambda name: (order[_package(name)], name))
        imports_of_it = " ".join(f"`{name}`" for name in listed) or "nothing of ours"
        lines.append(f"| `{room}` | {_about(room)} | {imports_of_it} |")
    return "\n".join(lines)


def _about(room: str) -> str:
    """Return the first paragraph of its docstring, nothing of a folder without one."""
    file = ROOT / room.replace(".", "/") / "__init__.py"
    text = ast.get_docstring(ast.parse(file.read_text())) if file.exists() else None
    return " ".join((text or "").split("\n\n")[0].split())


def page_with(text: str, imports_table: str) -> str:
    """Return the page with this table between its markers. Raises ValueError without markers."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"no {BEGIN} … {END} in the page")
    return f"{head}{BEGIN}\n{imports_table}\n{END}{tail}"


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _is_in(module: str, folder: str) -> bool:
    return f"{module}.".startswith(f"{folder}.")


def _package(module: str) -> str:
    return module.partition(".")[0]


def imports_of(path: Path, known: Collection[str]) -> Iterator[str]:
    """`from a.b import c` is of the module `a.b.c` if there is one, else of the next package above that is known."""
    text = path.read_text()
    if path.suffix == ".pyx":  # no Python: its imports at the top and in functions, each of one line
        text = "\n".join(re.findall(r"^ *((?:from [\w.]+ )?import [\w., ]+)$", text, re.MULTILINE))
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(BY_NAME) and node.args:
            names = [str(text.value) for text in node.args[:1] if isinstance(text, ast.Constant)]
        for name in names:
            parts = name.split(".")
            above = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
            if found := next((one for one in above if one in known), None):
                yield found


if __name__ == "__main__":
    made = table(modules())
    if sys.argv[1:] == ["write"]:
        PAGE.write_text(page_with(PAGE.read_text(), made))
    else:
        print(made)
