"""Cached registrations of brokers with a key: found whatever is signed again, for the principal that signs it."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from access.classes import AccessClass
from access.live import Stored
from access.proof import Proof
from registry.options.catalogue import Options
from rocketmq_remoting.acl_signature import SIGNATURE
from rocketmq_remoting.body_signature import split_signature
from rocketmq_remoting.command import Command, decode, encode
from rocketmq_remoting.registration import body_crc32
from rocketmq_remoting.remoting_command import SerializeType
from tests.access.files import OTHER, access_file
from tests.worker.cache.test_cached_registrations import OPTIONS, RENEWALS, RENEWED, check
from tests.worker.registrations import BINARY, JSON, KINDS, body_of, registration, signed
from tests.worker.scene import FakePeer
from worker.cache.cached_registrations import FRAME_LONGEST, CachedRegistrations
from worker.counters import Counters
from worker.guard import LONG_BODY, Guard, Verdict

FILE = """
[principals.team]
roles = ["broker"]
keys = [
    { accessKey = "K", secrets = [{ file = "a.key" }] },
    { accessKey = "L", secrets = [{ file = "a.key" }] },
]

[principals.other]
roles = ["broker"]
keys = [{ accessKey = "J", secrets = [{ file = "b.key" }] }]
"""
FIRST = body_of()


class Cache:
    """The cached registrations of a guard's worker."""

    def __init__(self, folder: Path) -> None:
        self.counters = Counters()
        self.guard = Guard(Options(access_file=str(access_file(folder, FILE))), self.counters)
        self.guard.take_stored(Stored())
        self.replies = CachedRegistrations(lambda: 1.0, self.counters, self.guard.proves)
        self.guard.when_changed(self.replies.clear)

    def proof_of(self, command: Command) -> Proof | None:
        verdicts: list[Verdict] = []
        self.guard.judge(command, FakePeer(1), AccessClass.BROKER, verdicts.append)
        return verdicts[0].proof

    def keep(self, command: Command, proof: Proof | None, frame: bytes | None = None) -> bool:
        """Keep the reply to a registration that proved this; return whether it is kept."""
        self.replies.clear()
        self.replies.keep(frame or encode(command), command, RENEWED, RENEWALS, "1", OPTIONS, proof)
        return len(self.replies) == 1

    def take(self, command: Command, frame: bytes | None = None) -> bool:
        """Keep the reply to a registration; return whether it is kept."""
        return self.keep(command, self.proof_of(command), frame)

    def has(self, command: Command) -> bool:
        return check(self.replies, encode(command)) is not None


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("access"))


def of_stamp(stamp: int, kind: SerializeType = JSON, opaque: int = 7, **more: str) -> Command:
    return registration(body_of(stamp), opaque, kind, 0, **more)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("first", [False, True], ids=["behind the others", "before the others"])
def test_each_round_is_found_and_verified(cache: Cache, kind: SerializeType, first: bool) -> None:
    assert cache.take(signed(of_stamp(1, kind), first=first))
    before = cache.counters.security.of("authn", "allowed").value
    rounds = [signed(of_stamp(stamp, kind, 7 + stamp), first=first) for stamp in range(2, 22)]
    assert len({command.get(SIGNATURE) for command in rounds}) == 20
    for command in rounds:
        found = check(cache.replies, encode(command))
        assert found
        answer = b"".join(found.cached.reply_to(found.opaque))
        assert answer == encode(command.reply(0, ext=RENEWED.ext, body=RENEWED.body))
    assert cache.counters.security.of("authn", "allowed").value == before + 20


def changed(command: Command, **ext: str) -> Command:
    """The request with these fields, under the signature that it had."""
    return replace(command, ext=(command.ext or {}) | ext)


def with_body(command: Command, body: bytes) -> Command:
    """The request with that body and its checksum, under the signature that it had."""
    return changed(replace(command, body=body), bodyCrc32=str(body_crc32(body)))


NEXT = signed(of_stamp(2))


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(with_body(NEXT, body_of(3)), id="an altered stamp under an old signature"),
        pytest.param(with_body(NEXT, body_of(2, topics=4)), id="an altered table under an old signature"),
        pytest.param(changed(NEXT, Signature=signed(of_stamp(1)).ext["Signature"]), id="the last signature"),  # type: ignore[index]
        pytest.param(signed(of_stamp(2), secret=OTHER), id="of another secret"),
        pytest.param(changed(NEXT, Signature=""), id="an empty signature"),
        pytest.param(changed(NEXT, Signature="?" * 28), id="a signature that is no Base64"),
        pytest.param(changed(NEXT, Signature=(NEXT.get(SIGNATURE) or "") + "A"), id="a longer signature"),
        pytest.param(of_stamp(2), id="unsigned"),
        pytest.param(of_stamp(2, AccessKey="K"), id="a key without a signature"),
        pytest.param(replace(of_stamp(2), ext=(of_stamp(2).ext or {}) | {SIGNATURE: "A" * 27 + "="}), id="no key"),
        pytest.param(signed(of_stamp(2), "J", OTHER), id="of another principal"),
        pytest.param(signed(of_stamp(2), "J"), id="another principal's key"),
        pytest.param(signed(of_stamp(2), "L"), id="another key of the same principal"),
        pytest.param(signed(of_stamp(2), "U"), id="a key that is not known"),
        pytest.param(signed(of_stamp(2, brokerName="b")), id="another broker"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_the_same_principal_has_not_signed_is_not_found(
    cache: Cache, kind: SerializeType, command: Command
) -> None:
    assert cache.take(signed(of_stamp(1, kind)))
    assert not cache.has(replace(command, serialize_type=kind))
    assert cache.has(signed(of_stamp(2, kind)))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_unsigned_one_is_not_there_for_what_is_signed(cache: Cache, kind: SerializeType) -> None:
    assert cache.take(of_stamp(1, kind))
    assert cache.has(of_stamp(2, kind))
    assert not cache.has(signed(of_stamp(2, kind)))
    assert not cache.has(signed(of_stamp(2, kind), "U"))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_key_that_is_not_known_proves_nothing_and_does_no_harm(cache: Cache, kind: SerializeType) -> None:
    assert cache.take(signed(of_stamp(1, kind), "U"))
    assert cache.has(signed(of_stamp(2, kind), "U"))
    assert cache.has(signed(of_stamp(3, kind), "U", OTHER))


def test_what_was_answered_though_its_signature_was_wrong_is_judged_each_time(cache: Cache) -> None:
    """While accessMode=observe: what is to be refused is to be counted."""
    for command in (signed(of_stamp(1), secret=OTHER), of_stamp(1, AccessKey="K")):
        assert cache.keep(command, None)
        assert not cache.has(command)


def test_the_reply_to_one_principal_is_not_for_another(cache: Cache) -> None:
    """Should a key pass to another principal, or to none, or be none's before."""
    of_team, of_other = (cache.proof_of(signed(of_stamp(1), *key)) for key in (("K",), ("J", OTHER)))
    for key, proof, found in (
        ("K", of_other, False),
        ("K", None, False),
        ("K", of_team, True),
        ("U", of_team, False),
        ("U", None, True),
    ):
        assert cache.keep(signed(of_stamp(1), key), proof)
        assert cache.has(signed(of_stamp(2), key)) == found


def test_a_revoked_key_proves_nothing_from_then_on(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for revoked in ("acl:K", "principal:team"):
        command = signed(of_stamp(1))
        proof = cache.proof_of(command)
        assert cache.keep(command, proof)
        assert cache.has(command)
        cache.guard.take_stored(Stored(revoked=frozenset({revoked})))
        assert len(cache.replies) == 0
        assert cache.keep(command, proof)  # of a request that was under way
        assert not cache.has(command)
        cache.guard.take_stored(Stored())


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "text", ["A", '"Signature":"AAAAAAAAAAAAAAAAAAAAAAAAAAA="', f"\0\tSignature\0\0\0\x1c{'A' * 27}="]
)
def test_a_signature_in_another_field_is_not_taken_for_it(
    cache: Cache, kind: SerializeType, text: str
) -> None:
    kept = cache.take(signed(of_stamp(1, kind, brokerName=text)))
    assert cache.has(signed(of_stamp(2, kind, brokerName=text))) == kept
    assert not cache.has(signed(of_stamp(2, kind, brokerName=text.replace("A", "B"))))


def test_the_signature_in_another_field_is_not_taken_for_it_either(cache: Cache) -> None:
    """Of a key that is not known, whose signature may be anything."""
    anything = "A" * 27 + "="
    first = of_stamp(1, BINARY, brokerName=f"\0\tSignature\0\0\0\x1c{anything}")
    assert not cache.take(changed(first, AccessKey="U", Signature=anything))


@pytest.mark.parametrize("more", ['"Signature":"AAAAAAAAAAAAAAAAAAAAAAAAAAA="', '"AccessKey":"U"'])
def test_a_member_that_comes_twice_in_json(cache: Cache, more: str) -> None:
    command = signed(of_stamp(1))
    frame = encode(command)
    header = frame[8 : -len(FIRST)].replace(b'"extFields":{', b'"extFields":{%s,' % more.encode())
    whole = struct.pack(">iI", 4 + len(header) + len(FIRST), len(header)) + header + FIRST
    read = decode(whole[4:])
    assert read.get(SIGNATURE) == command.get(SIGNATURE)
    kept = cache.take(read, whole)
    assert kept == (SIGNATURE not in more)
    forged = whole.replace((command.get(SIGNATURE) or "").encode(), b"B" * 27 + b"=")
    assert check(cache.replies, forged) is None


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("text", [b'\\"' * 14, b"\xff" * 28, b"A" * 27 + b'"'])
def test_what_ends_a_text_is_no_signature(cache: Cache, kind: SerializeType, text: bytes) -> None:
    """Of a key that is not known, which nothing else would notice."""
    command = signed(of_stamp(1, kind), "U")
    assert cache.take(command)
    frame = encode(command)
    assert check(cache.replies, frame)
    assert check(cache.replies, frame.replace((command.get(SIGNATURE) or "").encode(), text)) is None


edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 3), st.binary(max_size=3)),
    min_size=1,
    max_size=2,
)


@pytest.mark.parametrize("kind", [JSON, BINARY], ids=str)
@given(stamp=st.integers(1, 5), changes=edits, first=st.booleans(), shift=st.integers(-2, 2))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_changed_is_seen(
    cache: Cache,
    kind: SerializeType,
    stamp: int,
    changes: list[tuple[float, int, bytes]],
    first: bool,
    shift: int,
) -> None:
    """Only the opaque may be another: it is not signed."""
    kept, asked = signed(of_stamp(1, kind), first=first), signed(of_stamp(stamp, kind), first=first)
    assert cache.take(kept)
    header, body = encode(asked)[8 : -len(asked.body)], asked.body
    for place, removed, added in changes:
        at = int(place * len(header))
        header = header[:at] + added + header[at + removed :]
    word = kind << 24 | max(len(header) + shift, 0)
    frame = struct.pack(">iI", 4 + len(header) + len(body), word) + header + body
    if check(cache.replies, frame) is None:
        return
    read = decode(frame[4:])
    assert replace(read, opaque=7) == asked
    assert split_signature(read.body) == split_signature(kept.body)


def test_what_takes_long_to_verify_is_never_compared() -> None:
    """The guard verifies it in a thread."""
    assert FRAME_LONGEST <= LONG_BODY
