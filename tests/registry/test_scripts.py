"""The Lua files: headers that are their signatures, includes that come once and before their first use."""

import hashlib
import re

import pytest

from registry.clock import LATE_MS
from registry.members import TIMEOUT_MAX_MS, USUAL_TIMEOUT_MS
from registry.scripts import INCLUDE, LUA, script

NAMES = sorted(path.stem for path in LUA.glob("*.lua"))
INCLUDES = sorted(path.stem for path in (LUA / "includes").glob("*.lua"))
HEADER = re.compile(r"^--\[\[  lua/([a-z_]+)\.lua: .*?\]\]\n", re.DOTALL)
USED = re.compile(r"\b(KEYS|ARGV)\[(\d+)\]")


def source_of(name: str) -> tuple[str, str]:
    """Its header, and the rest."""
    text = (LUA / f"{name}.lua").read_text()
    header = HEADER.match(text)
    assert header is not None, f"{name}.lua has no header"
    return header[0], text[header.end() :]


@pytest.mark.parametrize("name", NAMES)
def test_a_header_names_its_file(name: str) -> None:
    header = HEADER.match(source_of(name)[0])
    assert header is not None
    assert header[1] == name
    assert "Returns" in header[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_key_and_argument_that_is_used_is_named(name: str) -> None:
    header, body = source_of(name)
    assert set(USED.findall(body)) <= set(USED.findall(header))


@pytest.mark.parametrize("name", NAMES)
def test_every_key_and_argument_that_is_named_is_used(name: str) -> None:
    header, body = source_of(name)
    named, used = set(USED.findall(header)), set(USED.findall(body))
    if "includes/rows.lua" in header or re.search(r"for i = \d+, ", body):
        used |= {one for one in named if one[0] == "ARGV"}  # from a place on, in a loop
    if INCLUDE.search(body) or name == "run_command":
        used |= {("KEYS", "1")}  # the includes find the namespace in it, and the driver
    if "unpack(ARGV)" in body:
        used |= {one for one in named if one[0] == "ARGV"}
    if '@include "lapses"' in body:
        used |= {one for one in named if re.search(rf"{one[0]}\[{one[1]}\] (broker|member):<", header)}
    assert named == used


@pytest.mark.parametrize("name", NAMES)
def test_numbers_in_a_header_have_no_holes(name: str) -> None:
    header = source_of(name)[0]
    for kind in ("KEYS", "ARGV"):
        numbers = sorted({int(number) for one, number in USED.findall(header) if one == kind})
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", NAMES)
def test_each_include_comes_once_and_before_its_first_use(name: str) -> None:
    source = re.sub(r"--.*", "", script(name).source)
    assert "@include" not in script(name).source
    defined = re.findall(r"^local function ([a-z_]+)", source, re.MULTILINE)
    assert len(defined) == len(set(defined))
    for function in defined:
        first = re.search(rf"\b{function}\(", source)
        assert first is not None
        assert source.rfind("local function", 0, first.start()) == first.start() - len("local function ")


@pytest.mark.parametrize("name", NAMES)
def test_a_script_does_without_what_is_not_everywhere(name: str) -> None:
    source = script(name).source
    assert not re.search(r"cmsgpack|struct\.|\bbit\.|math\.random|os\.", source)


@pytest.mark.parametrize("name", NAMES)
def test_a_dry_run_knows_each_command_of_a_script(name: str) -> None:
    """Those of jobs apart, which no request runs."""
    store = (LUA / "dry_run" / "store.lua").read_text()
    known = set(re.findall(r"^  ([A-Z]+) = |, ([A-Z]+) = ", store, re.MULTILINE))
    of_script = set(
        re.findall(
            r'(?:call|pcall|overwrite|text_or_nil|reply_or)\((?:[a-z0-9]+, )?"([A-Z]+)"', script(name).source
        )
    )
    unknown = of_script - {one for pair in known for one in pair}
    assert unknown <= ({"SUNIONSTORE"} if name == "checkpoint" else set())


def test_errors_of_commands_are_caught_in_one_place() -> None:
    """Elsewhere an error ends the script: before its first write nothing has happened, after it none may come."""
    catching = [path.name for path in LUA.rglob("*.lua") if re.search(r"pcall\(", path.read_text())]
    assert sorted(catching) == [
        "damage.lua",
        "store.lua",
    ]  # that of dry runs, for which scripts catch their own


@pytest.mark.parametrize("include", INCLUDES)
def test_every_include_is_of_use(include: str) -> None:
    assert any(f'--- @include "{include}"\n' in path.read_text() for path in LUA.rglob("*.lua"))


@pytest.mark.parametrize("include", INCLUDES)
def test_every_function_of_an_include_is_of_use(include: str) -> None:
    text = (LUA / "includes" / f"{include}.lua").read_text()
    everything = "".join(path.read_text() for path in LUA.rglob("*.lua"))
    for function in re.findall(r"^(?:local )?function ([A-Za-z_.]+)", text, re.MULTILINE):
        assert len(re.findall(rf"\b{re.escape(function)}\b", everything)) > 1, f"{function} is never called"


def test_the_name_of_a_script_is_the_hash_of_what_redis_gets() -> None:
    renew = script("renew_registration")
    assert renew.sha == hashlib.sha1(renew.source.encode()).hexdigest()


@pytest.mark.parametrize(
    ("include", "text"),
    [
        ("lease", f"local TICK_LATE_MS = {LATE_MS} "),
        ("timeouts", f"tonumber(text) <= {TIMEOUT_MAX_MS} "),
        ("tables", f'local TIMEOUT_MS, LONGEST_MS = "{USUAL_TIMEOUT_MS}", 2 * {TIMEOUT_MAX_MS} '),
    ],
)
def test_what_lua_and_python_both_know_is_the_same(include: str, text: str) -> None:
    assert text in (LUA / "includes" / f"{include}.lua").read_text()
