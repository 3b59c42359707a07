"""Bearer tokens: `mqns_<id>_<secret>`, 256 random bits. A server has the id and the SHA-256, never the token."""

import hashlib
import hmac
import re
import secrets
import string
from typing import Final, NamedTuple

from access.credentials import TokenHash
from registry.secret import Secret

__all__ = ["NewToken", "digest_of", "id_of", "new_token", "proves"]

ID_LETTERS: Final = string.ascii_lowercase + string.digits
ID_LENGTH: Final = 8
SECRET_BYTES: Final = 32
_FORM: Final = re.compile(
    rf"mqns_([a-z0-9]{{{ID_LENGTH}}})_[A-Za-z0-9_-]{{42}}[AEIMQUYcgkosw048]"  # the last letter has 4 of the bits
)


class NewToken(NamedTuple):
    """A token as it is shown once, and what of it is stored."""

    id: str
    token: Secret
    digest: Secret


def new_token() -> NewToken:
    """Return a token of the system's random source."""
    token_id = "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))
    text = f"mqns_{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    return NewToken(token_id, Secret(text), digest_of(text))


def id_of(text: str) -> str | None:
    """Return the id in a token, None if the text is none."""
    form = _FORM.fullmatch(text)
    return form[1] if form else None


def digest_of(token: str) -> Secret:
    """Return the SHA-256 of a token, in hexadecimal. A slow hash is for passwords: 256 bits are not guessed."""
    return Secret(hashlib.sha256(token.encode()).hexdigest())


def proves(token: str, stored: TokenHash) -> bool:
    """Return whether a token is the one whose hash is stored, in constant time; one that is over is, too."""
    return hmac.compare_digest(digest_of(token).reveal(), stored.digest.reveal())
