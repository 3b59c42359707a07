"""Texts of others: whether they are UTF-8, which all readers of a file want of all of it, and errors as one line."""

import base64
import re
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_redis_stream.text import is_utf8

Flags = npt.NDArray[np.bool_]
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
FRAMES: Final = re.compile(r"^ {2,}[0-9]+: .*(\n +at .*)?$", re.MULTILINE)


def one_line(error: object) -> str:
    """Return its text without line breaks, colours and frames of Rust: delta-rs writes for terminals."""
    return " ".join(FRAMES.sub("", COLOURS.sub("", str(error))).split())


def plain(text: str) -> str:
    """Return what a peer or the command line has, without what could end a line or move the cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def not_utf8(texts: pa.Array) -> Flags:
    """Which of them are not."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([not is_utf8(text or b"") for text in texts.view(pa.binary()).to_pylist()], bool)
    return np.zeros(len(texts), bool)


def without(texts: pa.Array, flags: Flags) -> pa.Array:
    """The same, null where the flags say so."""
    if not flags.any():
        return texts
    kept = texts.view(pa.binary()).to_pylist()
    return pa.array(
        [None if flag else text for text, flag in zip(kept, flags, strict=True)], pa.binary()
    ).view(pa.utf8())


def as_text(content: bytes) -> bytes:
    """The same, as base64 if it is not UTF-8."""
    return content if is_utf8(content) else base64.b64encode(content)
