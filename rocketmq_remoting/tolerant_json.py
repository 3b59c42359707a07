"""Rewriting the lenient JSON that Java's libraries accept to strict JSON (RFC 8259).

One pass of one regular expression: strict JSON is copied in long runs; keys without quotes, single quotes,
non-standard escapes, comments and surplus commas are rewritten one by one. There is no recursion and no backtracking
(all repeats are possessive), so the work is linear in the length. Every repeat has an upper bound, far beyond what
peers write, so that each match is a short step for any text."""

import re
from typing import Final

from rocketmq_remoting.cooperative import Cooperative, run_to_completion
from rocketmq_remoting.errors import BodyError


def _possessive(group: bytes, repeat: bytes) -> bytes:
    # `(?:...){m,n}+`, spelt as an atomic group: before Python 3.11.5 a possessive repeat of a group matches what the
    # group does not (python/cpython#106052). That of a single character is sound.
    return b"(?>(?:" + group + b")" + repeat + b")"


_COMMENT = (
    rb"/\*[^*]{0,4096}+\*{1,4096}+" + _possessive(rb"[^*/][^*]{0,4096}+\*{1,4096}+", b"{0,256}")
    + rb"/|//[^\n]{0,4096}+(?=\n|\Z)"
)  # fmt: skip
_GAP = _possessive(rb"[ \t\r\n\f\b]{1,4096}+|" + _COMMENT, b"{0,16}")
_PLAIN_STRING = rb'"[^"\\\x00-\x1f]{0,1024}+"'
_STRING = (
    rb'"' + _possessive(rb'[^"\\\x00-\x1f]{1,1024}+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})', b"{0,64}") + rb'"'
)
_WORD = rb"[A-Za-z_$][A-Za-z0-9_$.]{0,1024}+"
_NUMBER = (
    rb"-?+[0-9]{1,1024}+" + _possessive(rb"\.[0-9]{1,1024}+", b"?") + _possessive(rb"[eE][+-]?+[0-9]{1,1024}+", b"?")
    + rb"(?![A-Za-z0-9_$.+-])"
)  # fmt: skip
_LITERAL = rb"(?:true|false|null)(?![A-Za-z0-9_$.])"

# Strict JSON. The first alternative is the common case in one match: a member and its comma.
_STRICT = _possessive(
    _PLAIN_STRING + rb":(?:" + _PLAIN_STRING + rb"|[0-9]{1,1024}+|true|false),(?=\")"
    + rb"|[\[\]{}: \t\r\n]{1,4096}+|" + _STRING + rb"|,(?!" + _GAP + rb"[\]}])"
    + rb"|(?:" + _NUMBER + rb"|" + _LITERAL + rb")(?!" + _GAP + rb":)",
    b"{1,64}",
)  # fmt: skip
_TOKEN: Final = re.compile(
    rb"(?P<strict>" + _STRICT + rb")"
    + rb"|(?P<key>" + _NUMBER + rb"|" + _WORD + rb")(?=" + _GAP + rb":)"
    + rb'|"(?P<double>' + _possessive(rb'[^"\\]{1,64}+|\\.', b"{0,2048}") + rb')"'
    + rb"|'(?P<single>" + _possessive(rb"[^'\\]{1,64}+|\\.", b"{0,2048}") + rb")'"
    + rb"|(?P<dropped>,(?=" + _GAP + rb"[\]}])|" + _COMMENT + rb"|[\f\b]{1,4096}+)"
    + rb"|(?P<bad>.)",
    re.DOTALL,
)  # fmt: skip
_MATCHES_PER_STEP: Final = 32
_IN_STRING: Final = re.compile(
    rb"\\(?:(?P<hex>x[0-9a-fA-F]{2})|(?P<octal>[0-7])|(?P<other>[v'])|(?P<kept>[\"\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<bad>.))"
    rb'|(?P<raw>[\x00-\x1f"])',
    re.DOTALL,
)
_BOM: Final = b"\xef\xbb\xbf"


def normalise(text: bytes) -> bytes:
    """Return `text` with its tokens rewritten to strict JSON; BodyError for an unknown token.

    Accepts unquoted keys (numbers or words), single quotes, comments, a comma before a closing bracket, raw control
    characters, the escapes \\' \\v \\0-\\7 \\xHH, and a byte order mark. The order of the tokens is checked by
    the strict parser."""
    return run_to_completion(normalise_cooperatively(text))


def normalise_cooperatively(text: bytes, rewrites_max: int | None = None) -> Cooperative[bytes]:
    """As `normalise`, cooperatively; BodyError also if more than `rewrites_max` tokens need a rewrite."""
    strict = bytearray()
    rewritten = 0
    for i, match in enumerate(_TOKEN.finditer(text.removeprefix(_BOM)), 1):
        if match.lastgroup == "strict":
            strict += match[0]
        else:
            strict += _rewritten(match)
            rewritten += 1
            if rewrites_max is not None and rewritten > rewrites_max:
                raise BodyError(f"JSON with more than {rewrites_max} oddities")
        if i % _MATCHES_PER_STEP == 0:
            yield
    return bytes(strict)


def _rewritten(match: re.Match[bytes]) -> bytes:
    kind = match.lastgroup
    if kind == "key":
        return b'"' + match["key"] + b'"'
    if kind == "double" or kind == "single":
        return b'"' + _IN_STRING.sub(_rewrite_character, match[kind]) + b'"'
    if kind == "dropped":
        return b" "
    raise BodyError(f"unexpected {match[0]!r} at byte {match.start()}")


def _rewrite_character(match: re.Match[bytes]) -> bytes:
    kind = match.lastgroup
    if kind == "kept":
        return match[0]
    if kind == "hex":
        return b"\\u00" + match[0][2:]
    if kind == "octal":
        return b"\\u000" + match[0][1:]
    if kind == "other":
        return b"'" if match[0] == b"\\'" else b"\\u000b"
    if kind == "raw":
        return b'\\"' if match[0] == b'"' else b"\\u%04x" % match[0][0]
    raise BodyError(f"unknown escape {match[0]!r}")
