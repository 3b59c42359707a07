"""Signed requests for RocketMQ's ACL 1.0 (AclClientRPCHook)."""

import msgspec

from mqns.remoting.request import Request
from rocketmq_remoting.acl_signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, signature


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
