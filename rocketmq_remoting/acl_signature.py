"""The signature of a request by RocketMQ's ACL 1.0 (AclClientRPCHook, AclUtils, AclSigner), as clients make and servers
verify it. ACL 2.0 has the same on remoting.

Signed are the values of the ext fields and the body: no names, no bounds between values, no request code, no time."""

import hmac
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Final

__all__ = [
    *("ACCESS_KEY", "ONS_CHANNEL", "SECURITY_TOKEN", "SIGNATURE", "ZONE_MODE", "ZONE_NAME"),
    *("signature", "signed_text", "verifies"),
]

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"
"""Of temporary credentials."""
SIGNATURE: Final = "Signature"
ONS_CHANNEL: Final = "OnsChannel"
"""C++ and Node send and sign it."""
ZONE_NAME: Final = "__ZONE_NAME"
ZONE_MODE: Final = "__ZONE_MODE"
_NOT_SIGNED: Final = ((ZONE_NAME, ZONE_MODE), (SECURITY_TOKEN,))
"""What peers leave out of what they sign, beside nothing: clients of 5.x add the zone behind the signature, and the Go
client does not sign the token that it sends. No peer does both. Each form that is accepted is one more change that a
captured request can bear, so both together are refused."""


def signed_text(fields: Mapping[str, str]) -> bytes:
    """Return what is signed before the body: the values of all fields but the signature, in the order of their names.

    Surrogates that are alone become `?`, as in Java."""
    names = sorted(fields)
    if not "".join(names).isascii():  # Java's TreeMap orders by UTF-16: U+1F600 comes before U+FF5E
        names.sort(key=_utf16)
    if SIGNATURE in fields:
        names.remove(SIGNATURE)
    text = "".join(map(fields.__getitem__, names))
    try:
        return text.encode()
    except UnicodeEncodeError:  # two values may have the halves of a pair
        return _utf16(text).decode("utf-16-be", "surrogatepass").encode(errors="replace")


def signature(fields: Mapping[str, str], body: bytes, secret: str) -> str:
    """Return the signature of fields and body: HMAC-SHA1 in Base64, 28 characters."""
    return _signature(fields, body, secret).decode()


def verifies(fields: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether the signature among the fields is of this secret, in time that says nothing of how near it is.

    Takes 3 µs for a lookup, and 0.6 ms for a MiB of body, without the GIL, in each of three forms at most."""
    if SIGNATURE not in fields:
        return False
    given = fields[SIGNATURE].encode(errors="replace")
    if hmac.compare_digest(given, _signature(fields, body, secret)):
        return True
    return any(
        hmac.compare_digest(given, _signature(_without(fields, names), body, secret))
        for names in _NOT_SIGNED
        if not fields.keys().isdisjoint(names)
    )


def _signature(fields: Mapping[str, str], body: bytes, secret: str) -> bytes:
    digest = hmac.digest(secret.encode(errors="replace"), signed_text(fields) + body, "sha1")
    return b2a_base64(digest, newline=False)


def _without(fields: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name not in names}


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
