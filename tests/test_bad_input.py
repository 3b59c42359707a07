"""Commands with bad input, as a user would type them: each ends soon, with its exit code and a few lines on standard
error that name what is wrong, and no traceback."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.ports import free_port
from tests.mqnamesrv.process import NameServer, environment

LONG = "x" * 10_000
CONTROL = "\x1b[31mred\x07"
LINES_MOST = 5
LETTERS_MOST = 1_100
WITHIN_S = 15
"""Far more than any takes; a busy machine is slow to start a process."""
Case = tuple[str, str, int, str]

ADDRESSES: list[Case] = [
    ("no address", "topics -n {empty}", 2, "-n: no address in ''"),
    ("separators only", "topics -n ;", 2, "-n: no address"),
    ("no host", "topics -n :9876", 2, "-n: no host"),
    ("no port behind the colon", "topics -n localhost:", 2, "-n: no port"),
    ("a name as a port", "topics -n localhost:http", 2, "-n: no port"),
    ("a port over 65535", "topics -n localhost:65536", 2, "-n: no port"),
    ("IPv6 without brackets", "topics -n ::1:9876", 2, "-n: no brackets"),
    ("control characters as an address", "topics -n {control}", 2, "-n: no host"),
    ("a very long host", "topics -n {long}", 2, "-n: no host"),
    ("a long label", "topics -n {label}:1", 3, "label too long"),
    ("an empty label", "topics -n a..b", 3, "a..b:9876"),
    ("an unknown host", "topics -n no.such.host.invalid", 3, "no.such.host.invalid:9876"),
    ("a closed port", "topics -n {closed}", 3, "{closed}: not connected"),
    ("the HTTP port", "topics -n {http} --timeout 1", 4, "{http}: no answer within 1 s"),
    ("half an address to ping", "ping localhost:", 2, "ADDR: no port"),
    ("nothing to ping", "ping {empty}", 2, "ADDR: no address"),
]
HTTP: list[Case] = [
    ("no --http", "drains", 2, "--http"),
    ("an empty URL", "drains --http {empty}", 2, "--http: no host"),
    ("another scheme", "drains --http ftp://x", 2, "--http: 'ftp://x'"),
    ("half a URL", "brokers -n {wire} --http localhost:", 2, "--http: no port"),
    ("control characters as a URL", "settings --http {control}", 2, "--http: no host"),
    ("a closed HTTP port", "settings --http {closed}", 3, "http://{closed}"),
    ("the wire's port", "settings --http {wire}", 3, "Is it the HTTP port?"),
    ("an option with a slip", "settings lisenPort --http {http}", 1, "did you mean listenPort?"),
    ("an empty option", "settings {empty} --http {http}", 1, "no option ''"),
    ("a very long option", "settings {long} --http {http}", 1, "Request Line is too large"),
    (
        "control characters as an option",
        "settings {control} --http {http}",
        1,
        "no option '\\x1b[31mred\\x07'",
    ),
    ("one and --changed", "settings listenPort --changed --http {http}", 2, "--changed"),
    ("a drain of no name", "drain {empty} --reason r --http {http}", 1, "no broker ''"),
    ("a drain without a reason", "drain b --http {http}", 2, "--reason"),
    ("a drain for less than no time", "drain b --reason r --for -1 --http {http}", 2, "--for"),
    ("a drain for an age", "drain b --reason r --for 1e300 --http {http}", 1, "untilMillis"),
    ("a long reason", "drain b --reason {long} --http {http}", 1, "reason:"),
    ("a broker that is not there", "undrain no-such --http {http}", 1, "no broker 'no-such'"),
    ("a port that is none", "config set listenPort 65536 --http {http}", 1, "settings.listenPort"),
]
OPTIONS: list[Case] = [
    ("a command with a slip", "rotues", 2, "Did you mean 'routes'"),
    ("a subcommand with a slip", "config gte", 2, "Did you mean 'get'?"),
    ("an option with a slip", "topics --clutser c1", 2, "--cluster"),
    ("control characters as a command", "{control}", 2, "No such command"),
    ("another format", "topics -o xml", 2, "'-o'"),
    ("no format", "topics -o {empty}", 2, "'-o'"),
    ("no time", "topics --timeout 0", 2, "--timeout"),
    ("no number", "topics --timeout soon", 2, "--timeout"),
    ("NaN", "topics --timeout nan", 2, "--timeout"),
    ("a negative count", "ping -c -1", 2, "--count"),
    ("a negative interval", "watch -i -1", 2, "--interval"),
    ("another kind", "topics --kind none", 2, "--kind"),
    ("no topic", "routes", 2, "TOPIC"),
    ("an empty topic", "routes {empty} -n {wire}", 1, "no route of ''"),
    ("a topic that is not there", "routes NoSuch -n {wire}", 1, "no route of NoSuch"),
    ("a very long topic", "routes {long} -n {wire}", 1, "no route of xxx"),
    ("deletion of no topic", "deleteTopic -t {empty} -n {wire}", 2, "a name is empty"),
    ("permissions of no broker", "wipeWritePerm -b {empty} -n {wire}", 2, "a name is empty"),
    ("one too many", "topics extra", 2, "extra"),
    ("a file that is not there", "topics --tls --tls-trust {folder}/none", 2, "--tls-trust"),
    ("a key without its secret", "topics --access-key k", 2, "--secret-key-file"),
    ("a flag that is none", "config set enableTopicList maybe -n {wire}", 1, "neither true nor false"),
    ("a long namespace", "kv set {long} k v -n {wire}", 1, "maxNameBytes"),
    ("no file of the agent", "agent --config {folder}/none", 2, "{folder}/none"),
    ("a folder as a file of the agent", "agent --config {folder}", 2, "Is a directory"),
    ("no TOML", "agent --config {folder}/binary", 2, "{folder}/binary"),
]
SERVER: list[Case] = [
    ("an unknown letter", "-x", 1, "Unrecognized option: -x"),
    ("an option with a slip", "--confgFile x", 1, "Did you mean --configFile?"),
    ("control characters as an option", "--{control}", 1, "Unrecognized option: --\\x1b"),
    ("no argument", "-c", 1, "Missing argument for option: c"),
    ("no file", "-c {folder}/none", 255, "{folder}/none"),
    ("a folder as a file", "-c {folder}", 255, "Is a directory"),
    ("an empty name of a file", "-c {empty}", 255, "--configFile names no file"),
    ("a broken escape", "-c {folder}/binary -p", 255, "{folder}/binary: Invalid \\u"),
    ("nothing to export to", "--exportKv {empty}", 255, "--exportKv names no file"),
    ("a folder that is not there", "--exportKv {folder}/none/kv", 255, "{folder}/none/kv"),
]
PIPELINE: list[Case] = [
    ("a command with a slip", "rn", 2, "Did you mean 'run'?"),
    ("no warehouse", "run --url redis://{closed}", 2, "MQNS_PIPELINE_WAREHOUSE"),
    ("an empty warehouse", "run --url redis://{closed} -w {empty}", 2, "warehouse"),
    ("another scheme", "run --url ftp://x -w {folder}", 2, "url"),
    ("a closed port", "run --url redis://{closed} -w {folder}", 1, "{closed}"),
    (
        "a namespace with a blank",
        "run -w {folder} --url redis://{closed} --namespace {blank}",
        2,
        "NAMESPACES",
    ),
    ("a warehouse with control characters", "check -w {control}", 1, "is no folder"),
    ("no time", "route-at T yesterday -w {folder}", 2, "TIME"),
    ("times the wrong way round", "diff 2 1 -w {folder}", 2, "TO is before FROM"),
    ("a limit of none", "diff 1 2 --limit 0 -w {folder}", 2, "--limit"),
    ("no interval", "stream --every 0", 2, "--every"),
    ("a queue that is none", "work --queue x -w {folder}", 2, "--queue"),
    (
        "a made-up history of no namespace",
        "sample --url redis://{closed} --namespace {empty}",
        2,
        "--namespace",
    ),
    ("weeks without end", "sample --url redis://{closed} --weeks 99999999999", 2, "--weeks"),
]
CASES = [
    pytest.param(program, *case[1:], id=f"{program}: {case[0]}")
    for program, cases in (
        *(("mqns", cases) for cases in (ADDRESSES, HTTP, OPTIONS)),
        *(("mqnamesrv", SERVER), ("mqpipeline", PIPELINE)),
    )
    for case in cases
]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What stands in commands for addresses, files, and texts with blanks."""
    folder = tmp_path_factory.mktemp("input")
    (folder / "binary").write_bytes(bytes(range(256)) + b"\\u12\n")
    with NameServer(tmp_path_factory.mktemp("server")) as server:
        yield {
            "wire": f"127.0.0.1:{server.port}",
            "http": f"127.0.0.1:{server.http_port}",
            "closed": f"127.0.0.1:{free_port()}",
            "folder": str(folder),
            "empty": "",
            "blank": "a b",
            "long": LONG,
            "label": LONG[:70],
            "control": CONTROL,
        }


@pytest.mark.parametrize(("program", "arguments", "code", "reported"), CASES)
def test_bad_input(
    words: dict[str, str], tmp_path: Path, program: str, arguments: str, code: int, reported: str
) -> None:
    command = [str(Path(sys.executable).with_name(program)), *(w.format(**words) for w in arguments.split())]
    done = subprocess.run(
        command,
        env=environment(tmp_path, USER="me"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=WITHIN_S,
    )
    assert done.returncode == code, done
    assert reported.format(**words) in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) <= LINES_MOST, done.stderr
    assert [line for line in lines if not line.isprintable() or len(line) > LETTERS_MOST] == []
