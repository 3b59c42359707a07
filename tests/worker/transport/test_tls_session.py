"""TLS of one connection, without a socket."""

import ssl
from itertools import islice
from pathlib import Path

import pytest

from registry.options.catalogue import Options
from tests.worker.transport.certificates import Authority
from tests.worker.transport.client import insecure
from tests.worker.transport.key_updates import key_updates
from tests.worker.transport.tls_pair import TlsPair
from worker.transport.tls_context import TlsUnusable, build_context, openssl_ciphers, openssl_versions
from worker.transport.tls_session import OVERHEAD_MOST, TlsError, TlsSession

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def client(version: ssl.TLSVersion = V13) -> ssl.SSLContext:
    context = insecure()
    context.minimum_version = context.maximum_version = version
    return context


def pair(version: ssl.TLSVersion = V13) -> TlsPair:
    return TlsPair(client(version), TlsSession(build_context(Options())))


def receive_in_pieces(session: TlsSession, data: bytes, length: int) -> None:
    for at in range(0, len(data), length):
        session.receive(data[at : at + length])


@pytest.mark.parametrize("version", [V12, V13])
@pytest.mark.parametrize("cut", [0, 1, 7])
def test_bytes_come_through_however_they_are_cut(version: ssl.TLSVersion, cut: int) -> None:
    ends = pair(version)
    ends.shake_hands(cut)
    ends.client.write(b"q" * 40_000)
    assert ends.to_server(cut) == b"q" * 40_000
    assert ends.to_client(ends.session.encrypt(b"a" * 40_000)) == b"a" * 40_000


def test_plain_text_behind_the_handshake_in_one_piece_is_kept() -> None:
    ends = pair()
    with pytest.raises(ssl.SSLWantReadError):
        ends.client.do_handshake()
    ends.to_server()
    ends.client.do_handshake()
    ends.client.write(b"first frame")
    assert ends.to_server() == b"first frame"


def test_a_close_notify_is_seen_after_the_last_bytes() -> None:
    ends = pair()
    ends.shake_hands()
    ends.client.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        ends.client.unwrap()
    assert ends.to_server() == b"last"
    assert ends.session.ended
    with pytest.raises(ssl.SSLZeroReturnError):
        ends.to_client(ends.session.close_notify())


def test_garbage_is_an_error_with_an_alert() -> None:
    session = TlsSession(build_context(Options()))
    with pytest.raises(TlsError):
        session.receive(b"\x16\x03\x01\x00\x05hello")
    assert session.outgoing()[:1] == b"\x15"


def test_a_record_that_was_changed_on_its_way_is_an_error() -> None:
    ends = pair()
    ends.shake_hands()
    with pytest.raises(TlsError):
        ends.session.receive(b"\x17\x03\x03\x00\x20" + b"x" * 32)


@pytest.mark.parametrize("version", [V12, V13])
def test_short_texts_in_records_of_their_own_come_through_forever(version: ssl.TLSVersion) -> None:
    ends = pair(version)
    ends.shake_hands()
    for _ in range(2 * OVERHEAD_MOST // 20):
        ends.client.write(b"length")
        ends.client.write(b"f" * 20)
        assert ends.to_server() == b"length" + b"f" * 20


def test_a_flood_of_key_updates_is_an_error_before_many_are_answered(tmp_path: Path) -> None:
    context = client()
    context.keylog_filename = str(tmp_path / "keys")
    ends = TlsPair(context, TlsSession(build_context(Options())))
    ends.shake_hands()
    sent = b"".join(islice(key_updates(tmp_path / "keys"), 10_000))
    with pytest.raises(TlsError, match="no text"):
        receive_in_pieces(ends.session, sent, 1000)
    assert 0 < len(ends.session.outgoing()) <= OVERHEAD_MOST + 1000


def test_what_comes_behind_a_close_notify_takes_no_memory() -> None:
    ends = pair()
    ends.shake_hands()
    with pytest.raises(ssl.SSLWantReadError):
        ends.client.unwrap()
    ends.to_server()
    assert ends.session.ended
    with pytest.raises(TlsError, match="no text"):
        receive_in_pieces(ends.session, bytes(2 * OVERHEAD_MOST), 1000)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x01\x00\x00", id="long"),
        pytest.param(b"\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x03\x01\x00\x00", id="whose head is cut"),
    ],
)
@pytest.mark.parametrize("cut", [1, 20])
def test_a_hello_is_refused_before_there_is_memory_for_all_that_it_announces(record: bytes, cut: int) -> None:
    session = TlsSession(build_context(Options()))
    with pytest.raises(TlsError, match="ClientHello"):
        receive_in_pieces(session, record, cut)


def test_a_client_cannot_ask_for_another_handshake() -> None:
    assert build_context(Options()).options & ssl.OP_NO_RENEGOTIATION


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        pytest.param("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", id="GCM"),
        pytest.param("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384", id="CBC"),
        pytest.param("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA", id="RSA key exchange"),
        pytest.param(
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", id="ChaCha20"
        ),
        pytest.param("DHE-RSA-AES128-SHA256", "DHE-RSA-AES128-SHA256", id="already OpenSSL's"),
    ],
)
def test_cipher_suites_go_by_their_openssl_names(suite: str, name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL")
    assert openssl_ciphers([suite]) == [name]
    assert name in {cipher["name"] for cipher in context.get_ciphers()}


def test_suites_of_tls_1_3_are_no_cipher_list() -> None:
    assert openssl_ciphers(["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]) == []


@pytest.mark.parametrize(
    ("protocols", "ciphers", "spoken"),
    [
        pytest.param("", "", {V12, V13}, id="default"),
        pytest.param("TLSv1.2", "", {V12}, id="one version"),
        pytest.param("TLSv1.3, TLSv1.2", "", {V12, V13}, id="two versions"),
        pytest.param("", "TLS_AES_128_GCM_SHA256", {V13}, id="suites of 1.3 only"),
        pytest.param("", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", {V12}, id="suites of 1.2 only"),
        pytest.param(
            "TLSv1.3",
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384",
            {V13},
            id="both named",
        ),
    ],
)
def test_versions_are_those_the_options_leave(
    protocols: str, ciphers: str, spoken: set[ssl.TLSVersion]
) -> None:
    context = build_context(Options(tls_protocols=protocols, tls_ciphers=ciphers))
    shaken = set()
    for version in (V12, V13):
        try:
            TlsPair(client(version), TlsSession(context)).shake_hands()
            shaken.add(version)
        except TlsError:
            pass
    assert shaken == spoken


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(tls_protocols="TLSv1.4"), id="unknown version"),
        pytest.param(Options(tls_ciphers="NO_SUCH_CIPHER"), id="unknown cipher"),
        pytest.param(
            Options(tls_protocols="TLSv1.2", tls_ciphers="TLS_AES_128_GCM_SHA256"), id="nothing left"
        ),
        pytest.param(Options(tls_test_mode_enable=False), id="no certificate named"),
        pytest.param(
            Options(tls_test_mode_enable=False, tls_server_key_path="/none", tls_server_cert_path="/none"),
            id="no such file",
        ),
    ],
)
def test_options_that_cannot_be_had_leave_no_context(options: Options) -> None:
    with pytest.raises(TlsUnusable):
        build_context(options)


def test_names_of_versions() -> None:
    assert openssl_versions(["TLSv1.2", "TLSv1.3"]) == {V12, V13}


@pytest.mark.parametrize(
    ("password", "usable"), [pytest.param("secret", True, id="right"), pytest.param("", False, id="none")]
)
def test_an_encrypted_key_needs_its_password(tmp_path: Path, password: str, usable: bool) -> None:
    key, certificate = Authority().issue_files(tmp_path, "server", password="secret")
    options = Options(
        tls_test_mode_enable=False,
        tls_server_key_path=key,
        tls_server_cert_path=certificate,
        tls_server_key_password=password,
    )
    if usable:
        TlsPair(client(), TlsSession(build_context(options))).shake_hands()
    else:
        with pytest.raises(TlsUnusable):
            build_context(options)


NONE, OWN, STRANGER = "no certificate", "one of the authority", "one of another authority"


@pytest.mark.parametrize(
    ("need", "checked", "taken"),
    [
        pytest.param("none", True, {NONE, OWN, STRANGER}, id="none"),
        pytest.param("optional", True, {NONE, OWN}, id="optional"),
        pytest.param("optional", False, {NONE, OWN, STRANGER}, id="optional, unchecked"),
        pytest.param("require", True, {OWN}, id="require"),
        pytest.param("REQUIRE", False, {OWN}, id="require is always checked"),
        pytest.param("perhaps", True, {NONE, OWN, STRANGER}, id="unknown is none"),
    ],
)
def test_client_certificates(tmp_path: Path, need: str, checked: bool, taken: set[str]) -> None:
    authority = Authority()
    key, certificate = authority.issue_files(tmp_path, "server")
    context = build_context(
        Options(
            tls_test_mode_enable=False,
            tls_server_key_path=key,
            tls_server_cert_path=certificate,
            tls_server_need_client_auth=need,
            tls_server_auth_client=checked,
            tls_server_trust_cert_path=authority.file(tmp_path),
        )
    )
    accepted = set()
    for presented, issuer in ((NONE, None), (OWN, authority), (STRANGER, Authority("stranger"))):
        asking = client()
        if issuer:
            paths = issuer.issue_files(tmp_path, "client")
            asking.load_cert_chain(paths[1], paths[0])
        try:
            TlsPair(asking, TlsSession(context)).shake_hands()
            accepted.add(presented)
        except TlsError:
            pass
    assert accepted == taken
