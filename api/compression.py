"""gzip of answers (RFC 9110 section 8.4), for clients that accept it."""

from typing import Final

from flask import Flask, Response, request
from zlib_ng import zlib_ng

LEAST_BYTES: Final = 1000
"""A shorter answer fits into one packet anyway."""
LEVEL: Final = 3
"""Of 1 to 9: see docs/http-api.md for what it costs and what others would save."""
GZIP_WINDOW: Final = 16 + zlib_ng.MAX_WBITS
"""That of zlib by which its output is gzip's, without a time: the same bytes for the same answer."""
GZIP: Final = "gzip"
IDENTITY: Final = "identity"


def install(app: Flask) -> None:
    """Have the answers of an application compressed."""
    app.after_request(_compress)


def will_be_compressed(response: Response) -> bool:
    """Return whether an answer is a success that is long enough and whole, and gzip is what its client prefers."""
    return (
        response.status_code == 200
        and not response.is_streamed
        and not response.direct_passthrough
        and "Content-Encoding" not in response.headers
        and len(response.get_data()) >= LEAST_BYTES
        and _accepts_gzip()
    )


def _accepts_gzip() -> bool:
    accepted = request.accept_encodings
    return accepted.quality(GZIP) > 0 and accepted.quality(GZIP) >= accepted.quality(IDENTITY)


def _compress(response: Response) -> Response:
    if will_be_compressed(response):
        packer = zlib_ng.compressobj(LEVEL, zlib_ng.DEFLATED, GZIP_WINDOW)
        response.set_data(packer.compress(response.get_data()) + packer.flush())
        response.content_encoding = GZIP
    response.vary.add("Accept-Encoding")
    return response
