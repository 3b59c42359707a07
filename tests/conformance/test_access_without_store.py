"""Access while the store is away, and after it came back empty (docs/conformance.md, AC; docs/access.md)."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pytest
from msgspec import Struct

from access.tokens import new_token
from mqnamesrv.store import EmbeddedStore
from registry import access_tokens
from registry.drivers import run
from registry.plans import Origin
from rocketmq_remoting.codes import RequestCode, ResponseCode
from testbed.access_file import AccessFile, principal
from testbed.broker import A
from testbed.certificates import Certificates, issue, make_certificates
from testbed.connection import Connection
from testbed.eventually import eventually, stays
from testbed.nameserver import NameServer
from tests.conformance.test_access_keys import ask, signed

SECRET: Final = "of-this-test-0123456789"
REVOKED: Final = {"acl:revoked", "cn:interop revoked", "principal:console"}
DONE, REFUSED, STORE_AWAY = ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION, ResponseCode.SYSTEM_ERROR
FOLLOWED_S: Final = 3.0
"""A revocation is followed within a second; two more for a loaded machine. Ten bad proofs would shut this host out."""
BACK_S: Final = 20.0
READY: Final = "ready remoting="


class Guarded(Struct):
    """A server whose settings are shown to callers that sign or have a certificate: `good`, and `revoked`, which is."""

    store: EmbeddedStore
    server: NameServer
    token: str
    certificates: Certificates

    def code(self, key: str) -> int:
        """Return the answer to a request for the settings, which a worker has in its memory."""
        connection = Connection(self.server.port)
        request = signed(RequestCode.GET_NAMESRV_CONFIG, {}, key=key, secret=SECRET)
        try:
            return int(ask(connection, request).code)
        except ConnectionError:
            return -1  # of a worker that has just been killed
        finally:
            connection.close()

    def code_over_tls(self, subject: str) -> int:
        """Return the answer to the same request of a caller with the certificate of this subject."""
        connection = Connection(self.server.port, tls=self.certificates.context(subject))
        try:
            return int(connection.ask(RequestCode.GET_NAMESRV_CONFIG).code)
        finally:
            connection.close()

    def is_let_in(self, key: str) -> bool:
        return self.code(key) == DONE

    def replace_worker(self) -> None:
        """Kill the only worker, and wait for another one."""
        connection = Connection(self.server.port)
        os.kill(eventually(lambda: self.server.worker_of(connection)), signal.SIGKILL)
        eventually(lambda: self.code("unknown") == REFUSED, BACK_S)

    def status(self) -> int:
        """Return the answer over HTTP to the token of the file that is revoked."""
        shown = {"Authorization": f"Bearer {self.token}", "Via": "1.1 p"}
        return httpx.put(f"{self.http}/v1/kv/n/k", headers=shown, json={"value": "x"}, timeout=9).status_code

    @property
    def http(self) -> str:
        said = eventually(lambda: READY in self.server.said() and self.server.said())
        return f"http://{str(said).partition(READY)[2].partition(' http=')[2].split()[0]}"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    store = EmbeddedStore(tmp_path / "store", keep=False)
    store.start()
    token = new_token().token.reveal()
    file = AccessFile(tmp_path)
    file.write(
        principal("good", "admin", key="good", secrets='{ file = "k" }')
        + principal("revoked", "admin", key="revoked", secrets='{ file = "k" }')
        + '[principals.by-certificate]\nroles = ["admin"]\n'
        + 'certificates = ["cn:interop good", "cn:interop revoked"]\n'
        + '[principals.console]\nroles = ["operator"]\ntokens = [{ file = "t" }]\n',
        k=SECRET,
        t=token,
    )
    certificates = make_certificates(tmp_path / "tls")
    for subject in ("good", "revoked"):
        issue(certificates, subject)
    tls = certificates.server_properties | {"tls.server.need.client.auth": "optional"}
    rules = {"accessFile": str(file.path), "accessConfig": "signed mtls", "accessAdmin": "token"}
    server = NameServer(tmp_path / "server", tls | rules | {"remotingWorkers": "1"}, url=store.url)
    try:
        server.start()
        guarded = Guarded(store, server, token, certificates)
        assert (guarded.code("good"), guarded.code("revoked"), guarded.status()) == (DONE, DONE, 200)
        with server.store() as client:
            for one in REVOKED:
                run(access_tokens.revoke(server.keys, one, "revoked", Origin("op", "test")), client)
        eventually(lambda: not guarded.is_let_in("revoked"), FOLLOWED_S)
        eventually(lambda: guarded.status() == 401, FOLLOWED_S)
        yield guarded
    finally:
        server.stop()
        store.stop()


@pytest.mark.conformance("AC-40")
def test_while_the_store_is_away_a_key_is_good_and_a_revoked_one_is_not(guarded: Guarded) -> None:
    guarded.store.child.signal(signal.SIGSTOP)
    stays(lambda: guarded.is_let_in("good") and guarded.code("revoked") == REFUSED, 4, 1)
    guarded.store.child.signal(signal.SIGCONT)


def test_a_worker_that_begins_meanwhile_does_not_guess_what_is_revoked(guarded: Guarded) -> None:
    guarded.store.child.signal(signal.SIGSTOP)
    guarded.replace_worker()
    assert [guarded.code(key) for key in ("good", "revoked", "unknown")] == [STORE_AWAY, STORE_AWAY, REFUSED]
    assert [guarded.code_over_tls(subject) for subject in ("good", "revoked")] == [STORE_AWAY, STORE_AWAY]
    assert "what is revoked was not read since this worker began" in guarded.server.said()
    guarded.store.child.signal(signal.SIGCONT)
    eventually(partial(guarded.is_let_in, "good"), BACK_S)
    assert guarded.code("revoked") == REFUSED
    assert [guarded.code_over_tls(subject) for subject in ("good", "revoked")] == [DONE, REFUSED]


def test_what_is_revoked_stays_so_in_a_store_that_came_back_empty(guarded: Guarded) -> None:
    keys = guarded.server.keys
    with guarded.server.store() as client:
        client.flushall()
        eventually(lambda: A.register(Connection(guarded.server.port)).code == DONE, BACK_S)
        eventually(lambda: set(client.hkeys(keys.access_revoked)) - {"since"} == REVOKED, BACK_S)
    assert (guarded.status(), guarded.code("revoked"), guarded.code("good")) == (401, REFUSED, DONE)
    guarded.replace_worker()
    eventually(partial(guarded.is_let_in, "good"), BACK_S)
    assert guarded.code("revoked") == REFUSED
    assert [guarded.code_over_tls(subject) for subject in ("good", "revoked")] == [DONE, REFUSED]
