"""The ACL signature, written from its description with the standard library alone."""

import base64
import hashlib
import hmac
from collections.abc import Mapping


def sign(fields: Mapping[str, str], body: bytes, secret: str) -> str:
    """Return the signature of a request with these fields."""
    text = "".join(fields[name] for name in sorted(fields) if name != "Signature")
    return base64.b64encode(hmac.new(secret.encode(), text.encode() + body, hashlib.sha1).digest()).decode()


def verified(fields: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether the signature is of this secret; a zone, or a SecurityToken, may be left out of it."""
    forms = [fields]
    for left_out in (("__ZONE_NAME", "__ZONE_MODE"), ("SecurityToken",)):
        forms.append({name: value for name, value in fields.items() if name not in left_out})
    return fields.get("Signature") in [sign(form, body, secret) for form in forms]
