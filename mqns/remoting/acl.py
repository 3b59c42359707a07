"""Signed requests for RocketMQ's ACL 1.0 (AclClientRPCHook).

The signature is the HMAC-SHA1, in Base64, of the values of all ext fields in the order of their names, and the body."""

import base64
import hashlib
import hmac
from typing import Final

import msgspec

from mqns.remoting.request import Request

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"
SIGNATURE: Final = "Signature"


class AclCredentials(msgspec.Struct, frozen=True):
    """A hook for RemotingOptions; must be the last hook, since fields added later are not signed.

    `security_token` belongs to temporary credentials."""

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __call__(self, address: str, request: Request) -> Request:
        """Return the request with key, token and signature."""
        fields = {**(request.ext or {}), ACCESS_KEY: self.access_key}
        if self.security_token is not None:
            fields[SECURITY_TOKEN] = self.security_token
        fields.pop(SIGNATURE, None)
        fields[SIGNATURE] = signature(fields, request.body, self.secret_key)
        return Request(request.code, fields, request.body)

    def __repr__(self) -> str:
        return f"AclCredentials({self.access_key!r}, …)"


def signature(fields: dict[str, str], body: bytes, secret_key: str) -> str:
    """Return the signature of the ext fields, without the signature field, and the body."""
    signed = "".join(fields[name] for name in sorted(fields)).encode() + body
    return base64.b64encode(hmac.digest(secret_key.encode(), signed, hashlib.sha1)).decode()
