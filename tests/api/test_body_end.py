"""The end of a chunked body is found where gunicorn, which decodes it afterwards, finds it."""

from types import SimpleNamespace

import pytest
from gunicorn.http.body import Body, ChunkedReader, LengthReader
from gunicorn.http.unreader import IterUnreader
from hypothesis import given
from hypothesis import strategies as st

from api.transport.body_end import body_end
from api.transport.refusal import Refusal

LIMIT = 10_000
CHUNKED = ChunkedReader(SimpleNamespace(), IterUnreader([]))

chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=8)
extensions = st.sampled_from([b"", b";a", b' ; a="x\tb"'])
trailers = st.sampled_from([b"", b"X-A: 1\r\n", b"X-A: 1\r\nX-B: 2\r\n"])


@given(
    chunks,
    extensions,
    trailers,
    st.binary(max_size=20),
    st.lists(st.integers(min_value=1, max_value=9), min_size=1),
)
def test_in_whatever_pieces_it_comes(
    chunks: list[bytes], extension: bytes, trailer: bytes, behind: bytes, steps: list[int]
) -> None:
    body = b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    body += b"0\r\n" + trailer + b"\r\n"
    find_end, come, end = body_end(CHUNKED, LIMIT), bytearray(), None
    text, at = body + behind, 0
    while end is None:
        step = steps[at % len(steps)]
        come += text[len(come) : len(come) + step]
        at += 1
        end = find_end(come)
        assert end is None or end <= len(come)
    assert end == len(body)

    unreader = IterUnreader([bytes(text[:end])])
    request = SimpleNamespace(parse_headers=lambda data, from_trailer: [])
    assert Body(ChunkedReader(request, unreader)).read() == b"".join(chunks)
    assert unreader.read() == b""


@pytest.mark.parametrize("size", [b"", b"-1", b"+1", b"0x1", b"1_0", b"\xd9\xa1", b"1 1"])
def test_a_size_is_hexadecimal_digits(size: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        body_end(CHUNKED, LIMIT)(bytearray(size + b"\r\n"))
    assert refused.value.status == 400


def test_a_body_without_chunks_has_its_length() -> None:
    find_end = body_end(LengthReader(IterUnreader([]), 3), LIMIT)
    assert [find_end(bytearray(come)) for come in (b"", b"ab", b"abc", b"abcd")] == [None, None, 3, 3]
