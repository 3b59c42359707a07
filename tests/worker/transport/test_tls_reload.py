"""Certificates that change while the worker runs."""

import ssl
import time
from pathlib import Path

import pytest

from registry.options.catalogue import Options
from registry.options.tls import TlsMode, with_tls_file
from tests.logged import logged
from tests.worker.transport.certificates import DAYS, Authority
from tests.worker.transport.client import insecure
from tests.worker.transport.tls_pair import TlsPair
from worker.transport.tls import ServerTls, TlsUnusable
from worker.transport.tls_context import certificates_end


class Files:
    """The three files of a server, and whose certificate it shows."""

    def __init__(self, folder: Path) -> None:
        self.key, self.certificate, self.trust = folder / "key", folder / "certificate", folder / "trust"
        self.options = Options(
            tls_test_mode_enable=False,
            tls_config_file=str(folder / "none"),
            tls_server_key_path=str(self.key),
            tls_server_cert_path=str(self.certificate),
            tls_server_trust_cert_path=str(self.trust),
            tls_server_need_client_auth="require",
            tls_server_auth_client=True,
        )

    def put(self, issued: tuple[bytes, bytes], authority: Authority) -> None:
        self.key.write_bytes(issued[0])
        self.certificate.write_bytes(issued[1])
        self.trust.write_bytes(authority.pem)


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> Files:
    made = Files(tmp_path)
    made.put(authority.issue("first"), authority)
    return made


def shown(tls: ServerTls, authority: Authority, folder: Path, name: str = "client") -> bytes:
    """The certificate a new connection of a client of `authority` gets, DER."""
    context = insecure()
    key, certificate = authority.issue_files(folder, name)
    context.load_cert_chain(certificate, key)
    ends = TlsPair(context, tls.session())
    ends.shake_hands()
    return ends.client.getpeercert(binary_form=True) or b""


def der(issued: tuple[bytes, bytes]) -> bytes:
    return ssl.PEM_cert_to_DER_cert(issued[1].decode())


def test_a_new_key_and_certificate_are_taken_together(
    files: Files, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = ServerTls(files.options)
    first, second = shown(tls, authority, tmp_path), authority.issue("second")
    files.key.write_bytes(second[0])
    tls.poll()
    assert shown(tls, authority, tmp_path) == first
    files.certificate.write_bytes(second[1])
    tls.poll()
    assert shown(tls, authority, tmp_path) == der(second)
    files.key.write_bytes(authority.issue("third")[0])
    tls.poll()
    assert shown(tls, authority, tmp_path) == der(second)
    assert not logged(caplog)


def test_certificate_first_is_as_good(files: Files, authority: Authority, tmp_path: Path) -> None:
    tls, second = ServerTls(files.options), authority.issue("second")
    files.certificate.write_bytes(second[1])
    tls.poll()
    files.key.write_bytes(second[0])
    tls.poll()
    assert shown(tls, authority, tmp_path) == der(second)


def test_a_certificate_renewed_for_the_same_key_is_taken(
    files: Files, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls, renewed = ServerTls(files.options), authority.renew("first", files.key.read_bytes())
    files.certificate.write_bytes(renewed)
    tls.poll()
    assert shown(tls, authority, tmp_path) == ssl.PEM_cert_to_DER_cert(renewed.decode())
    assert not logged(caplog)


def test_the_end_of_the_certificates_in_use(files: Files, authority: Authority) -> None:
    """Of a chain the first end counts; what is no good changes nothing."""
    tls = ServerTls(files.options)
    assert tls.certificates_end_s == pytest.approx(days_from_now(DAYS), abs=600)
    key = files.key.read_bytes()
    files.certificate.write_bytes(authority.renew("first", key) + authority.renew("first", key, days=10))
    tls.poll()
    assert tls.certificates_end_s == pytest.approx(days_from_now(10), abs=600)
    files.certificate.write_bytes(b"no certificate")
    tls.poll()
    assert tls.certificates_end_s == pytest.approx(days_from_now(10), abs=600)
    assert certificates_end(str(files.certificate)) is None


def days_from_now(days: int) -> float:
    return time.time() + days * 86400


def test_a_self_signed_certificate_has_no_end_that_matters() -> None:
    tls = ServerTls(Options())
    tls.session()
    assert tls.certificates_end_s is None


def test_files_that_are_links_to_a_folder_that_changes(authority: Authority, tmp_path: Path) -> None:
    """As Kubernetes renews the files of a secret: all at once, by the name of their folder."""
    files, data = Files(tmp_path), tmp_path / "..data"
    for name in ("key", "certificate", "trust"):
        (tmp_path / name).symlink_to(data / name)
    issued = [authority.issue("first"), authority.issue("second")]
    for number, pair in enumerate(issued):
        (tmp_path / f"..{number}").mkdir()
        Files(tmp_path / f"..{number}").put(pair, authority)
    data.symlink_to("..0")
    tls = ServerTls(files.options)
    assert shown(tls, authority, tmp_path) == der(issued[0])
    (tmp_path / "..data_tmp").symlink_to("..1")
    (tmp_path / "..data_tmp").rename(data)
    tls.poll()
    assert shown(tls, authority, tmp_path) == der(issued[1])


def test_a_new_trust_file_alone_counts(files: Files, tmp_path: Path) -> None:
    tls, other = ServerTls(files.options), Authority("other")
    files.trust.write_bytes(other.pem)
    tls.poll()
    assert shown(tls, other, tmp_path)


def test_what_relies_on_the_trust_file_is_told_of_a_new_one_that_is_good(
    files: Files, authority: Authority
) -> None:
    tls, told = ServerTls(files.options), list[str]()
    tls.when_trust_changes(lambda: told.append("changed"))
    second = authority.issue("second")
    files.key.write_bytes(second[0])
    files.certificate.write_bytes(second[1])
    tls.poll()
    files.trust.write_bytes(b"no certificate")
    tls.poll()
    assert told == []
    files.trust.write_bytes(Authority("other").pem)
    tls.poll()
    tls.poll()
    assert told == ["changed"]


def test_a_file_written_again_with_the_same_content_changes_nothing(files: Files) -> None:
    tls = ServerTls(files.options)
    before = tls._context
    files.trust.write_bytes(files.trust.read_bytes())
    tls.poll()
    assert tls._context is before


def test_a_bad_pair_leaves_the_old_one_until_it_is_fixed(
    files: Files, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = ServerTls(files.options)
    first, second = shown(tls, authority, tmp_path), authority.issue("second")
    files.key.write_bytes(second[0])
    files.certificate.write_bytes(b"half a certif")
    tls.poll()
    assert shown(tls, authority, tmp_path) == first
    assert "the old certificate stays" in caplog.text
    files.certificate.write_bytes(second[1])
    tls.poll()
    assert shown(tls, authority, tmp_path) == der(second)


@pytest.mark.parametrize("missing", [("key", "certificate"), ("key",), ("certificate",), ("trust",)])
def test_files_may_come_after_the_start(
    files: Files, authority: Authority, tmp_path: Path, missing: tuple[str, ...]
) -> None:
    paths = [tmp_path / name for name in missing]
    contents = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    tls = ServerTls(files.options)
    with pytest.raises(TlsUnusable):
        tls.session()
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
        tls.poll()
    assert shown(tls, authority, tmp_path)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        pytest.param("disabled", TlsMode.DISABLED, id="disabled"),
        pytest.param("enforcing", TlsMode.ENFORCING, id="enforcing"),
        pytest.param("permissive", TlsMode.PERMISSIVE, id="permissive"),
        pytest.param("strict", TlsMode.PERMISSIVE, id="anything else"),
    ],
)
def test_modes(tmp_path: Path, text: str, mode: TlsMode) -> None:
    options = Options(tls_server_mode=text, tls_config_file=str(tmp_path / "none"))
    assert ServerTls(options).mode is mode


@pytest.mark.parametrize(
    "text", [pytest.param("", id="nothing"), pytest.param("tls.server.mode=\\u00zz", id="bad")]
)
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tls.properties"
    path.write_text(text)
    options = Options(tls_config_file=str(path), tls_server_mode="enforcing")
    assert with_tls_file(options) == options


def test_the_file_wins_over_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "tls.properties"
    path.write_text(
        "tls.server.mode=enforcing\ntls.test.mode.enable=false\ntls.server.keyPath=/k\nlistenPort=1\nunknown=2\n"
    )
    options = with_tls_file(Options(tls_config_file=str(path), tls_server_mode="disabled"))
    assert (options.tls_server_mode, options.tls_test_mode_enable, options.tls_server_key_path) == (
        "enforcing",
        False,
        "/k",
    )
    assert options.listen_port == Options().listen_port
