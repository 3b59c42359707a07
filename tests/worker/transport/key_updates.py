"""KeyUpdate messages of TLS 1.3 (RFC 8446 section 4.6.3), which Python's ssl cannot send: made of a client's secret."""

from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

HEADER = bytes.fromhex("170303 0016")
MESSAGE = bytes.fromhex("18 000001 01 16")
"""That asks for one of the other end; a handshake message."""


def key_updates(key_log: Path) -> Iterator[bytes]:
    """Yield the next records of a client that has sent nothing but its handshake, with TLS_AES_256_GCM_SHA384."""
    lines = map(str.split, key_log.read_text().splitlines())
    secret = next(bytes.fromhex(words[2]) for words in lines if words[0] == "CLIENT_TRAFFIC_SECRET_0")
    while True:
        key, nonce = _expanded(secret, b"key", 32), _expanded(secret, b"iv", 12)  # of the first record
        yield HEADER + AESGCM(key).encrypt(nonce, MESSAGE, HEADER)
        secret = _expanded(secret, b"traffic upd", 48)


def _expanded(secret: bytes, label: bytes, length: int) -> bytes:
    label = b"tls13 " + label
    info = length.to_bytes(2) + bytes([len(label)]) + label + b"\0"
    return HKDFExpand(SHA384(), length, info).derive(secret)
