"""Names of certificates, as a TLS handshake of Python shows them, odd ones too."""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtensionOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from access.certificates import CertificateNames, UnreadableCertificate, names_in, names_of_peer

END = datetime(2200, 6, 9, 12, 30, 15, tzinfo=UTC)
URI, DNS, MAIL = 6, 2, 1
"""Tags of kinds of names."""
NOT_AFTER = "Jun  9 12:30:15 2200 GMT"
Name = tuple[int, bytes]


def der(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 128:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size, "big") + content


def shown(folder: Path, names: Sequence[Name] = (), common: Sequence[str] = ("tools",)) -> ssl.SSLObject:
    """Return the server's end of a handshake with a client that has a certificate of these names, which is trusted."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(hours=1))
        .not_valid_after(END)
    )
    if names:
        content = b"".join(der(0x80 | tag, name) for tag, name in names)
        extension = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, der(0x30, content))
        builder = builder.add_extension(extension, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    file = folder / "client.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(certificate.public_bytes(Encoding.PEM) + secret)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    server.verify_flags = ssl.VerifyFlags.VERIFY_DEFAULT
    server.load_verify_locations(file)
    for context in (client, server):
        context.load_cert_chain(file)
    return handshake(client, server)


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> ssl.SSLObject:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True))
    for _ in range(5):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[1]


def read(peer: ssl.SSLObject) -> CertificateNames:
    names = names_of_peer(peer)
    assert names is not None
    return names


def test_names_and_end_of_a_certificate(tmp_path: Path) -> None:
    names = [(DNS, b"Broker-0.ns.svc"), (URI, b"spiffe://td/ns/a"), (DNS, b"b"), (MAIL, b"a@b")]
    expected = CertificateNames(END.timestamp(), ("spiffe://td/ns/a",), ("broker-0.ns.svc", "b"))
    assert read(shown(tmp_path, names)) == expected


def test_the_common_name_counts_without_others_only(tmp_path: Path) -> None:
    """AC-16."""
    assert read(shown(tmp_path)).cn == "tools"
    assert read(shown(tmp_path, [(MAIL, b"a@b")])).cn == "tools"
    assert read(shown(tmp_path, [(DNS, b"x")])).cn is None
    assert read(shown(tmp_path, [(URI, b"x:y")])).cn is None


@pytest.mark.parametrize("common", [(), ("a", "b")])
def test_none_or_several_common_names_are_none(tmp_path: Path, common: tuple[str, ...]) -> None:
    assert read(shown(tmp_path, common=common)).cn is None


@pytest.mark.parametrize(
    "odd",
    [
        *(b"broker-0\0.evil.example", b"broker\n", b"", b"\x7f", "bröker".encode()),
        pytest.param("bro\N{KELVIN SIGN}er-0".encode(), id="whose small letters are those of another"),
    ],
)
def test_a_name_with_odd_characters_is_left_out_and_leaves_no_place_for_another(
    tmp_path: Path, odd: bytes
) -> None:
    names = read(shown(tmp_path, [(DNS, odd), (URI, odd)]))
    assert (names.uris, names.dns, names.cn) == ((), (), None)
    assert read(shown(tmp_path, [(DNS, odd), (DNS, b"x")])).dns == ("x",)


def test_a_common_name_with_odd_characters_is_none(tmp_path: Path) -> None:
    assert read(shown(tmp_path, common=("tools\0.evil.example",))).cn is None
    assert read(shown(tmp_path, common=("wérkzeug",))).cn == "wérkzeug"


def test_names_that_are_no_text_are_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableCertificate, match="cannot be read"):
        names_of_peer(shown(tmp_path, [(DNS, b"\xff\xfe")]))


def test_a_certificate_with_thousands_of_names_is_unreadable(tmp_path: Path) -> None:
    names = [(DNS, b"b-%d" % number) for number in range(101)]
    with pytest.raises(UnreadableCertificate, match="101 names"):
        names_of_peer(shown(tmp_path, names))
    assert len(read(shown(tmp_path, names[1:])).dns) == 100


def test_a_peer_without_a_certificate_has_no_names(tmp_path: Path) -> None:
    shown(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "client.pem")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    assert names_of_peer(handshake(client, server)) is None


@pytest.mark.parametrize("end", [{}, {"notAfter": None}, {"notAfter": "Bad time value"}])
def test_a_certificate_without_an_end_is_unreadable(end: dict[str, object]) -> None:
    with pytest.raises(UnreadableCertificate, match="no end"):
        names_in(end)


NAMES = st.lists(st.tuples(st.sampled_from(["URI", "DNS", "email", "othername"]), st.text(max_size=9)))


@given(NAMES, st.lists(st.text(max_size=9), max_size=2))
def test_any_names_are_read(names: list[tuple[str, str]], common: list[str]) -> None:
    subject = tuple((("commonName", name),) for name in common)
    result = names_in({"subjectAltName": tuple(names), "subject": subject, "notAfter": NOT_AFTER})
    assert result.not_after == END.timestamp()
    assert all(name.isprintable() for name in (*result.uris, *result.dns, result.cn or ""))
    assert result.cn is None or not {"URI", "DNS"} & {kind for kind, _ in names}
