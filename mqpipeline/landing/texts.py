"""Text that is not UTF-8: Spark keeps such bytes, other readers of a file refuse all of it, so none gets there."""

import base64

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]


def not_utf8(texts: pa.Array) -> Flags:
    """Which of them are not."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([_is_not_utf8(text) for text in texts.view(pa.binary()).to_pylist()], bool)
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
    return base64.b64encode(content) if _is_not_utf8(content) else content


def _is_not_utf8(content: bytes | None) -> bool:
    try:
        (content or b"").decode()
    except UnicodeDecodeError:
        return True
    return False
