"""What fuzzing begins with and has found worth keeping, once more, and a few changes of each: no atheris needed."""

import random
import time
from pathlib import Path

import pytest

from testbed.transports import compiled
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, cached_requests

CORPUS = Path(__file__).with_name("corpus")
TARGET_S = 0.7
"""How long each target gets changed inputs."""
INPUT_S = 1.0
"""Of processor time, for one input of at most 2 KB; it takes some 0.1 ms."""
LARGEST = 2048
"""Bytes of an input."""
PIECES = (
    b"",
    b"\0",
    b"\xff",
    b'"',
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"\\u",
    b"null",
    b"-",
    b"1e9",
    b"/*",
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=compiled if target is cached_requests else ())
        for name, target in TARGETS.items()
    ],
)
def test_the_corpus_and_what_is_like_it(name: str) -> None:
    corpus = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    assert corpus
    corpus += seeds(name, LARGEST)
    for content in corpus:
        check(name, content)
    chance = random.Random(name)
    until = time.monotonic() + TARGET_S
    while time.monotonic() < until:
        check(name, changed(chance, corpus))


def test_the_corpus_is_small() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == set(TARGETS)
    assert len(files) < 500
    assert sum(path.stat().st_size for path in files) < 300_000


def check(name: str, content: bytes) -> None:
    began = time.thread_time()
    try:
        TARGETS[name](content)
    except Exception as error:
        raise AssertionError(f"{name} with {content!r}") from error
    assert time.thread_time() - began < INPUT_S, content


def changed(chance: random.Random, corpus: list[bytes]) -> bytes:
    """One input with a few places cut out, overwritten, repeated, or put in from another."""
    content = chance.choice(corpus)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(content))
        other = chance.choice(corpus)
        piece = chance.choice((*PIECES, chance.randbytes(2), content[at : at + 20], other[at : at + 40]))
        content = content[:at] + piece + content[at + chance.choice((0, 0, 1, len(piece))) :]
    return content[:LARGEST]
