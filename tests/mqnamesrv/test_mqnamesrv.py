"""The whole name server as one process tree: starts, shares settings, survives deaths, leaves nothing behind."""

import json
import os
import re
import shutil
import signal
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from mqnamesrv.store import EmbeddedStore
from rocketmq_remoting.codes import RequestCode
from testbed.eventually import eventually
from testbed.process_tree import open_files
from tests.api.http import a_broker
from tests.mqnamesrv.process import NameServer, environment, mqnamesrv, runs

FILE = "orderMessageEnable=true\nmyKey=x\n# kept\nhttpThreads=3\n"
PRINTED = ("load config properties file OK, ", "The Name Server boot success. ", "ready ")
LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}\] \[\d+\] \[default\] \[[A-Z]+\] [\w.]+ \S")
PROCESSES = (
    "store.sock",
    "master [mqnamesrv-remoting]",
    "master [mqnamesrv-http]",
    "rq:worker:",
    "worker.jobs.scheduler",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "namesrv").mkdir()
    (folder / "namesrv" / "kvConfig.json").write_text('{"configTable":{"n":{"k":"v"},"empty":{}}}')
    (folder / "n.properties").write_text(FILE)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[NameServer]:
    with NameServer(folder, "-c", f"{folder}/n.properties") as server:
        yield server


@pytest.mark.conformance("CFG-12", "CFG-13", "CFG-19")
def test_what_it_prints_and_lists(server: NameServer, folder: Path) -> None:
    lines = server.output.splitlines()
    assert lines[0] == f"load config properties file OK, {folder}/n.properties"
    assert f"The Name Server boot success. serializeType=JSON, address 127.0.0.1:{server.port}" in lines
    assert [line for line in lines if line.startswith("ready ")] == [
        f"ready remoting=127.0.0.1:{server.port} http=127.0.0.1:{server.http_port} store={server.store}"
    ]
    assert server.store.endswith(" (embedded)")
    listing = server.listing()
    assert listing["listenPort"] == str(server.port)
    assert listing["orderMessageEnable"] == "true"
    assert listing["myKey"] == "x"


def test_http_is_ready(server: NameServer) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}/readyz", timeout=5) as answer:
        assert answer.status == 200


@pytest.mark.conformance("KV-13")
def test_kv_of_the_java_file_is_taken_over(server: NameServer) -> None:
    assert server.kv("n", "k") == "v"
    assert "KV taken over from" in server.output


@pytest.mark.conformance("CFG-14")
def test_an_update_is_written_to_the_file(server: NameServer, folder: Path) -> None:
    before = (folder / "n.properties").read_text()
    server.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"waitSecondsForService=7\nlistenPort=1\n")
    eventually((folder / "n.properties.bak").exists)
    eventually(lambda: (folder / "n.properties").read_text() != before)
    entries = (folder / "n.properties").read_text().splitlines()
    assert {"waitSecondsForService=7", "listenPort=1", "myKey=x", "httpThreads=3"} <= set(entries)
    assert (folder / "n.properties.bak").read_text() == before
    listed(server, listenPort="1")
    answer = httpx.patch(
        f"http://127.0.0.1:{server.http_port}/v1/settings", json={"settings": {"serverSocketBacklog": 77}}
    )
    assert answer.json()["inForce"] == {"serverSocketBacklog": "restart"}
    eventually(lambda: "serverSocketBacklog=77" in (folder / "n.properties").read_text().splitlines())
    server.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"waitSecondsForService=8\nlistenPort=65536\n")
    eventually(lambda: "waitSecondsForService=8" in (folder / "n.properties").read_text().splitlines())
    assert "listenPort=65536" not in (folder / "n.properties").read_text()  # the next start could not listen
    listed(server, listenPort="65536")
    assert "listenPort=65536, out of range" in server.output


def listed(server: NameServer, **options: str) -> None:
    """Soon: each connection may be another worker's, which reads of an update in the stream."""
    eventually(lambda: options.items() <= server.listing().items())


def test_a_child_has_of_the_supervisor_s_files_its_listener_only(server: NameServer) -> None:
    """Else a port stays open, or a folder locked, when those are gone that it belongs to."""
    of_supervisor = open_files(server.pid)
    shared = {
        name: {
            file for file in open_files(pid) & of_supervisor if file.startswith("socket:") or "lock" in file
        }
        for pid, name in server.children().items()
    }
    listeners = {
        side: {file for name, files in shared.items() if f"[mqnamesrv-{side}]" in name for file in files}
        for side in ("remoting", "http")
    }
    assert [len(files) for files in listeners.values()] == [1, 1]
    assert listeners["remoting"] != listeners["http"]
    others = {file for name, files in shared.items() if "[mqnamesrv-" not in name for file in files}
    assert [Path(file).name for file in others] == ["lock"]  # the store's


def test_the_supervisor_has_one_thread(server: NameServer) -> None:
    """A fork has one, and what others have locked stays locked in it."""
    assert len(list(Path(f"/proc/{server.pid}/task").iterdir())) == 1


def test_workers_share_what_their_master_has_loaded(server: NameServer) -> None:
    """A quarter of a worker's memory is its own; it was half while it looked through the master's objects."""
    for pid in server.pids("worker [mqnamesrv-remoting]"):
        sizes = dict(re.findall(r"^(\w+): +(\d+) kB$", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M))
        assert int(sizes["Private_Dirty"]) < 0.4 * int(sizes["Rss"])


def test_a_killed_worker_comes_back(server: NameServer) -> None:
    before = server.pids("worker [mqnamesrv-remoting]")
    assert len(before) == 2
    os.kill(min(before), signal.SIGKILL)
    eventually(lambda: len(server.pids("worker [mqnamesrv-remoting]") - before) == 1)
    assert server.kv("n", "k") == "v"


@pytest.mark.parametrize("words", PROCESSES)
def test_a_process_that_dies_starts_again(server: NameServer, words: str) -> None:
    before = server.pids(words)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: server.pids(words) and not server.pids(words) & before)
    eventually(lambda: _answers(server))


def _answers(server: NameServer) -> bool:
    """On the same port as ever, from the store, whose KV is still there."""
    try:
        return server.kv("n", "k") == "v"
    except OSError:
        return False


def test_all_processes_log_in_one_form(server: NameServer) -> None:
    """With time, process and level; HTTP logs here what a limit refuses."""
    url = f"http://127.0.0.1:{server.http_port}/v1/kv/n/large"
    assert httpx.put(url, json={"value": "v" * 300_000}).status_code == HTTPStatus.CONFLICT
    eventually(lambda: "was refused" in server.output)
    lines = [line for line in server.output.splitlines() if not line.startswith(PRINTED)]
    assert [line for line in lines if not LINE.match(line)] == []
    assert {"mqnamesrv.serve", "api.problems"} <= {line.split()[6] for line in lines}


def test_all_processes_log_json(tmp_path: Path) -> None:
    """What a broker, an operator and the job did, and each request over HTTP."""
    options = {"MQNS_LOG_FORMAT": "json", "MQNS_ACCESS_LOG": "true", "MQNS_NAMESPACE": "blue"}
    with NameServer(tmp_path, **options) as server:
        url = f"http://127.0.0.1:{server.http_port}/v1"
        reply = httpx.post(f"{url}/brokers", json=a_broker(brokerName="b1", heartbeatTimeoutMillis=1000))
        assert reply.status_code == HTTPStatus.OK, reply.text

        def logged(message: str) -> list[dict[str, object]]:
            lines = [json.loads(line) for line in server.output.splitlines() if not line.startswith(PRINTED)]
            assert {line["namespace"] for line in lines} == {"blue"}
            return [line for line in lines if line["message"].startswith(message)]

        [came] = eventually(lambda: logged("broker_registered first"), 10)
        [went] = eventually(lambda: logged("broker_removed expired"), 10)
        assert came["broker"] == went["broker"] == "b1"
        assert str(came["actor"]).startswith("http:127.0.0.1:")
        assert went["actor"] == "job:expire"
        [request] = logged('127.0.0.1 "POST /v1/brokers HTTP/1.1" 200 ')
        assert request["logger"] == "gunicorn.access"


def test_sighup_replaces_all_workers(server: NameServer) -> None:
    long_lived = server.pids("store.sock") | server.pids("master [")
    before = set(server.children())
    server.send(signal.SIGHUP)
    eventually(
        lambda: set(server.children()) & before <= long_lived and len(server.pids("worker [mqnamesrv-")) == 3,
        20,
    )
    assert long_lived <= set(server.children())
    eventually(lambda: _answers(server))


def test_nothing_is_imported_from_where_it_was_started(tmp_path: Path) -> None:
    """A folder with a program of another, which goes while the server runs."""
    folder = tmp_path / "theirs"
    (folder / "api").mkdir(parents=True)
    for file in (folder / "wsgi.py", folder / "api" / "__init__.py"):
        file.write_text("raise SystemExit('not ours')")
    with NameServer(tmp_path, through=("env", "-C", str(folder))) as server:
        url = f"http://127.0.0.1:{server.http_port}/healthz"
        assert httpx.get(url).status_code == HTTPStatus.OK
        shutil.rmtree(folder)
        before = server.pids("worker [mqnamesrv-")
        server.send(signal.SIGHUP)
        eventually(lambda: len(after := server.pids("worker [mqnamesrv-")) == 3 and not after & before, 20)
        assert httpx.get(url).status_code == HTTPStatus.OK
        assert "http ended" not in server.output


def test_it_starts_with_its_input_closed(tmp_path: Path) -> None:
    with NameServer(tmp_path, through=("sh", "-c", 'exec "$@" <&-', "sh")) as server:
        assert server.kv("n", "k") is None


@pytest.mark.conformance("KV-12", "KV-14")
def test_a_restart_keeps_kv_and_settings(tmp_path: Path) -> None:
    with NameServer(tmp_path) as first:
        first.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "w"})
        first.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"enableTopicList=false\nsupportActingMaster=true")
        listed(first, enableTopicList="false")
        done = mqnamesrv("--exportKv", f"{tmp_path}/kv.json", env=environment(tmp_path))
        assert done.stdout == f"1 KV namespaces written to {tmp_path}/kv.json\n"
        assert json.loads((tmp_path / "kv.json").read_text()) == {"configTable": {"n": {"k": "w"}}}
        assert first.stop() == 0
    with NameServer(tmp_path, MQNS_SUPPORT_ACTING_MASTER="false") as second:
        assert second.kv("n", "k") == "w"
        listing = second.listing()
        assert listing["enableTopicList"] == "false"
        assert listing["supportActingMaster"] == "false"  # it was given at this start too


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name
)
def test_nothing_is_left_behind(tmp_path: Path, number: signal.Signals) -> None:
    with NameServer(tmp_path) as server:
        children = server.children()
        assert len(children) >= 8, children
        server.stop(number)
        eventually(lambda: not [title for pid, title in children.items() if runs(pid)], 15)
    if number != signal.SIGKILL:
        assert not list((tmp_path / "data").glob("store.*l"))


def test_a_redis_of_its_own(tmp_path: Path, each_store: EmbeddedStore) -> None:
    with NameServer(tmp_path, REDIS_URL=each_store.url, MQNS_KV_CONFIG_PATH="relative.json") as server:
        assert server.store == each_store.name
        assert server.listing()["kvConfigPath"] == f"{Path.cwd()}/relative.json"  # children run elsewhere
        server.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "v"})
        assert server.kv("n", "k") == "v"
        assert not server.pids("store.sock")


def test_without_a_redis_on_the_path_it_brings_its_own(tmp_path: Path) -> None:
    with NameServer(tmp_path, PATH=str(tmp_path)) as server:
        assert server.store.startswith("valkey-server ")
        server.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "v"})
        assert server.kv("n", "k") == "v"


def test_a_file_that_cannot_be_written_is_reported_and_left(tmp_path: Path) -> None:
    file = tmp_path / "sub" / "n.properties"
    file.parent.mkdir()
    file.write_text("")
    (tmp_path / "sub" / "n.properties.tmp").mkdir()  # even root cannot write over a folder
    with NameServer(tmp_path, "-c", str(file)) as server:
        server.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"enableTopicList=false")
        eventually(lambda: f"{file} cannot be written: " in server.output)
        listed(server, enableTopicList="false")
        assert file.read_text() == ""


def test_two_side_by_side(server: NameServer, tmp_path: Path) -> None:
    with NameServer(tmp_path) as second:
        server.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "side", "value": "v"})
        assert server.kv("n", "side") == "v"
        assert second.kv("n", "side") is None


def test_it_is_ready_soon(server: NameServer) -> None:
    assert server.ready_after_s < 10  # 5 s on an idle machine
