"""The chart's profile `secure`, on processes with what its pods have: the commands of docs/access.md, and which callers
are served."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import redis as redis_py
from cryptography import x509

from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys
from rocketmq_remoting.codes import ResponseCode
from testbed.broker import Broker
from testbed.certificates import Certificates, issue, make_certificates
from testbed.connection import Connection
from testbed.eventually import eventually
from testbed.ports import free_port
from tests.helm.chart import CHART, ROOT
from tests.kube.cluster import Namespace
from tests.kube.processes import HERE, PROGRAMS, Container, running

SECTION: Final = re.compile(r"^## On Kubernetes\n(.*?)^## ", re.MULTILINE | re.DOTALL)
FENCE: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BROKER_NAME: Final = "broker-a.brokers.rocketmq.svc"
FOLLOWED_S: Final = 20.0
"""A file is looked at each second; the machine may be slow."""
BLOCK_S: Final = 120
TAKEN: Final = "the access file was taken"
KEY, SECRET = "signer", "12345678abcdefgh"
ACCESS_FILE: Final = f"""
[principals.signer]
roles = ["broker"]
keys = [{{ accessKey = "{KEY}", secrets = [{{ file = "signer.key" }}] }}]

[principals.brokers]
roles = ["broker"]
certificates = ["dns:*.brokers.rocketmq.svc"]
"""
BALANCER: Final = {"type": "LoadBalancer", "proxyTrustedCidrs": ["10.9.0.0/16"]}


class Shell:
    """Runs blocks of the page in a folder, with the names of a namespace and port of the test."""

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._places = {
            "kubectl create namespace rocketmq\n": "",
            "-n rocketmq": f"-n {namespace.name}",
            "./helm": str(CHART),
            "--http localhost": f"--http http://localhost:{self.port}",
            "localhost:8080": f"localhost:{self.port}",
            " 8080:8080": f" {self.port}:8080",
        }
        path = f"{namespace.cluster.bin}:{ROOT / 'build/helm/bin'}:{PROGRAMS}"
        self._environment = os.environ | {"KUBECONFIG": str(namespace.cluster.kubeconfig), "PATH": path}
        self._groups: list[int] = []

    def run(self, block: str) -> str:
        """Return its output. AssertionError where a command fails."""
        for text, here in self._places.items():
            block = block.replace(text, here)
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._groups.append(process.pid)
        said, _ = process.communicate(timeout=BLOCK_S)
        assert process.returncode == 0, f"{block}\n{said}"
        return said

    def end(self) -> None:
        """End what blocks have left in the background."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)


def blocks() -> list[str]:
    section = SECTION.search((ROOT / "docs/access.md").read_text())
    assert section
    return FENCE.findall(section[1])


@pytest.fixture
def shell(namespace: Namespace, tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "shell"
    folder.mkdir()
    shell = Shell(namespace, folder)
    yield shell
    shell.end()


@pytest.fixture
def certificates(namespace: Namespace, tmp_path: Path) -> Certificates:
    """What cert-manager makes: the Secret of the name server, and the files of a broker."""
    made = make_certificates(tmp_path / "certificates")
    issue(made, "broker-a", x509.DNSName(BROKER_NAME))
    files = {"tls.crt": "server.pem", "tls.key": "server.key", "ca.crt": "ca.pem"}
    words = [f"--from-file={name}={made.folder / file}" for name, file in files.items()]
    namespace.kubectl("create", "secret", "generic", "namesrv-tls", *words)
    return made


@contextmanager
def all_running(
    namespace: Namespace, folder: Path, store: EmbeddedStore, *components: str
) -> Iterator[list[Container]]:
    with ExitStack() as stack:
        more = {"MQNS_REDIS_URL": store.url, "MQNS_REMOTING_WORKERS": "1"}
        yield [
            stack.enter_context(running(namespace, "mq", component, folder, **more))
            for component in components
        ]


def round_trip(container: Container, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What `helm test` runs."""
    command = (sys.executable, "-m", "mqns.roundtrip", "--connections=1", "--within=5", *words)
    return subprocess.run(
        [*command, f"{HERE}:{container.port}"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def of_broker(certificates: Certificates) -> tuple[str, ...]:
    """Return the words by which a round trip shows the broker's certificate."""
    file = certificates.folder / "broker-a"
    return "--tls", f"--certificate={file}.pem", f"--key={file}.key"


def actors(redis: redis_py.Redis, kind: str) -> set[str]:
    """Return whose the events of a kind are; of a peer only how it was seen."""
    entries: Any = redis.xrange(Keys("default").events)
    found = {fields["actor"] for _, fields in entries if fields["kind"] == kind}
    return {actor.partition(":")[0] if actor.startswith("wire:") else actor for actor in found}


def registered(container: Container, header: bytes) -> int:
    """Return the code of a registration behind this PROXY header."""
    return Broker("stranger").register(Connection(container.port, first=header)).code


def proxy(address: str) -> bytes:
    return f"PROXY TCP4 {address} {HERE} 40000 9876\r\n".encode()


@pytest.mark.timeout(900)
def test_every_command_of_the_page_does_what_it_says(
    shell: Shell,
    namespace: Namespace,
    certificates: Certificates,
    store: EmbeddedStore,
    redis: redis_py.Redis,
    tmp_path: Path,
) -> None:
    secret, install, tokens, program, rotate, revoke, look = blocks()
    shell.run(secret)
    shell.run(install)
    for component in ("remoting", "http"):
        namespace.kubectl("rollout", "status", f"deployment/mq-{component}", "--timeout=120s")
    with all_running(namespace, tmp_path, store, "remoting", "http") as (remoting, http):
        said = shell.run(tokens)
        assert "token:console" in said, said
        assert said.count("token:alice") == 1, said
        shell.run(program)
        assert actors(redis, "kv_changed") == {"token:alice"}
        stranger = (
            "curl -s -X PUT localhost:8080/v1/kv/orders/paused -H 'Content-Type: application/json' -d '{}'"
        )
        assert '"status":401' in shell.run(stranger)

        assert round_trip(remoting).returncode == 0, "pods are net"
        assert registered(remoting, proxy("10.244.9.9")) == ResponseCode.SUCCESS
        assert registered(remoting, proxy("203.0.113.7")) == ResponseCode.NO_PERMISSION
        certified = round_trip(remoting, *of_broker(certificates))
        assert certified.returncode == 0, certified.stderr
        assert actors(redis, "broker_registered") >= {"mtls:brokers", "wire"}

        pids = [remoting.pid, http.pid]
        first, second = (operate(remoting, certificates, file) for file in ("mqadmin.key", "mqadmin.key.new"))
        shell.run(first)
        shell.run(rotate)
        shell.run(f"! {second}")
        taken = remoting.said().count(TAKEN)
        for container in (remoting, http):
            container.sync()
        eventually(lambda: remoting.said().count(TAKEN) > taken, FOLLOWED_S)
        shell.run(second)
        shell.run(first)
        assert actors(redis, "kv_changed") == {"token:alice", "acl:mqadmin"}

        said = shell.run(revoke)
        assert "revoked" in said, said
        for command in (first, second):
            assert "answered code 16: access denied" in shell.run(f"! {command}"), command
        assert "admin needs" in shell.run(look)
        assert [remoting.pid, http.pid] == pids
        assert remoting.runs()
        assert http.runs()


def operate(remoting: Container, certificates: Certificates, secret: str) -> str:
    """Return what the page has for mqadmin's change by mqns, with this secret."""
    tls = f"--tls --tls-trust {certificates.folder / 'ca.pem'}"
    key = f"--access-key mqadmin --secret-key-file namesrv-access/{secret}"
    return f"mqns updateKvConfig -s orders -k {secret} -v true -n {HERE}:{remoting.port} {tls} {key}"


@pytest.mark.timeout(600)
def test_behind_a_balancer_callers_have_their_own_rights(
    namespace: Namespace,
    certificates: Certificates,
    store: EmbeddedStore,
    redis: redis_py.Redis,
    tmp_path: Path,
) -> None:
    values = {
        "access": {"files": {"access.toml": ACCESS_FILE, "signer.key": SECRET}},
        "tls": {"existingSecret": "namesrv-tls", "clientAuth": "optional"},
        "remoting": {"replicas": 1, "service": BALANCER},
        "http": {"enabled": False},
    }
    namespace.install("mq", values)
    with all_running(namespace, tmp_path, store, "remoting") as (remoting,):
        assert registered(remoting, proxy("10.244.9.9")) == ResponseCode.SUCCESS
        assert registered(remoting, proxy("203.0.113.7")) == ResponseCode.NO_PERMISSION
        refused = round_trip(remoting)
        assert "access denied: broker needs net or signed or mtls" in refused.stderr, "no header, no rights"
        signed = round_trip(remoting, MQNS_ACCESS_KEY=KEY, MQNS_SECRET_KEY=SECRET)
        assert signed.returncode == 0, signed.stderr
        certified = round_trip(remoting, *of_broker(certificates))
        assert certified.returncode == 0, certified.stderr
        assert actors(redis, "broker_registered") == {"wire", "acl:signer", "mtls:brokers"}
