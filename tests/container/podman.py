"""Containers as pods run them: a read-only root, no capability and no way to one, the host's network."""

import os
import resource
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

_NAME, _VERSION = os.environ.get("IMAGE", "localhost/redis-namesrv"), version("redis-namesrv")
NAMESRV, PIPELINE = f"{_NAME}:{_VERSION}", f"{_NAME}-pipeline:{_VERSION}"
STOPS_WITHIN_S = 40
"""shutdownWaitTimeSeconds and what gunicorn adds to it; after that podman kills."""
KILLED = 137


def _limits() -> Iterator[str]:
    """No more than ours: podman's own are higher than an account without CAP_SYS_RESOURCE may give."""
    for name, limit, enough in (
        ("nofile", resource.RLIMIT_NOFILE, 20_000),
        ("nproc", resource.RLIMIT_NPROC, 4096),
    ):
        hard = resource.getrlimit(limit)[1]
        most = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
        yield f"--ulimit={name}={most}:{most}"


RESTRICTED = (
    "--read-only",
    "--read-only-tmpfs=false",
    "--tmpfs=/tmp",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    "--network=host",
    "--cgroups=disabled",
    "--log-driver=k8s-file",
    *_limits(),
)


def podman(*words: str, timeout_s: float = 120.0) -> str:
    """What it prints."""
    done = subprocess.run(["podman", *words], capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"podman {words[0]}: {done.stderr}"
    return done.stdout


def once(image: str, *command: str, timeout_s: float = 120.0, **env: str) -> subprocess.CompletedProcess[str]:
    """A container that does one thing."""
    name = _name()
    words = ["podman", "run", "--rm", f"--name={name}", *RESTRICTED, *_variables(env), image, *command]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
    finally:
        _remove(name)


class Container:
    """One that runs."""

    def __init__(self) -> None:
        self.name = _name()

    def start(self, image: str, command: Sequence[str], env: Mapping[str, str], more: Sequence[str]) -> None:
        """`more` are words of `podman run`."""
        words = ("run", "--detach", f"--name={self.name}", *RESTRICTED, *_variables(env), *more)
        podman(*words, image, *command)

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Another process in it."""
        words = ["podman", "exec", self.name, *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    def said(self) -> str:
        """Both of its outputs."""
        words = ["podman", "logs", self.name]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout

    def state(self, of: str) -> str:
        """A member of what podman knows of its state, such as `Running`."""
        return podman("inspect", "--format", f"{{{{.State.{of}}}}}", self.name).strip()

    def signal(self, name: str) -> None:
        """To its first process."""
        podman("kill", f"--signal={name}", self.name)

    def stop(self) -> int:
        """End it as Kubernetes does -> its exit code, KILLED if it took too long."""
        podman("stop", f"--time={STOPS_WITHIN_S}", self.name)
        return int(self.state("ExitCode"))


@contextmanager
def running(
    image: str, *command: str, env: Mapping[str, str], more: tuple[str, ...] = ()
) -> Iterator[Container]:
    """A container until the block ends."""
    container = Container()
    try:
        container.start(image, command, env, more)
        yield container
    finally:
        _remove(container.name)


@contextmanager
def files_of(image: str) -> Iterator[Path]:
    """The folder in which an image's root is seen."""
    try:
        yield Path(podman("image", "mount", image).strip())
    finally:
        podman("image", "unmount", image)


def _variables(env: Mapping[str, str]) -> list[str]:
    return [f"--env={name}={text}" for name, text in env.items()]


def _name() -> str:
    return f"redis-namesrv-test-{uuid.uuid4().hex[:12]}"


def _remove(name: str) -> None:
    """Whatever it is doing, and if it is there at all."""
    podman("rm", "--force", "--ignore", "--time=0", name)
