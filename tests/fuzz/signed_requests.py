"""Signed requests before the guard of a worker: what their signature proves, and whether they are answered.

The HMAC, the rules and the limits are written here once more, in the plainest way, and must say the same."""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from access.classes import AccessClass, class_of
from access.live import Stored
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, decode, encode
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.remoting_command import SerializeType
from tests.fuzz.known_principals import CLASSES, SECRETS, known
from tests.fuzz.reading import read
from tests.worker.scene import FakePeer
from worker.counters import Counters
from worker.guard import Guard, Verdict
from worker.peer import Via

KEY, SIGNATURE, TOKEN = "AccessKey", "Signature", "SecurityToken"
LEFT_OUT: Final = (frozenset[str](), frozenset({"__ZONE_NAME", "__ZONE_MODE"}), frozenset({TOKEN}))
"""Fields that may be missing in what was signed, by form."""
ALONE: Final = re.compile("[\ud800-\udfff]")
BROKERS_OWN: Final = (103, 104, 322, 901, 904)
LONGEST_NAME: Final = 32_767
"""Bytes of a field's name in the binary header."""


class Situation(NamedTuple):
    """Where a request comes from, under which rules, and how the target signs it."""

    address: str
    tls: bool
    strict: bool
    key: str
    form: frozenset[str]

    @classmethod
    def of(cls, number: int) -> "Situation":
        """Return the situation that a byte stands for."""
        addresses = ("192.0.2.7:1", "10.0.0.5:1", "127.0.0.1:1", "192.0.2.7:1")
        at = number % 4
        return cls(
            addresses[at], at == 3, bool(number & 4), [*SECRETS][number // 8 % 4], LEFT_OUT[number // 32 % 3]
        )

    @property
    def is_loopback(self) -> bool:
        return self.address.startswith("127.")


class NoCertificate:
    """A TLS session of a peer that shows no certificate."""

    certificate = None


RULES: Final = (
    Options(
        access_read="open", access_broker="signed", access_admin="loopback signed", access_config="tls+signed"
    ),
    Options(access_read="signed", access_broker="net signed", access_admin="signed", access_config="off"),
)


def _admits(of_class: AccessClass, at: Situation, signed: bool) -> bool:
    """Return what RULES say, in words of Python."""
    safe = signed and (at.tls or at.is_loopback)
    near = at.address.startswith(("10.", "127."))
    if at.strict:
        by_class = {1: signed, 2: near or signed, 4: safe, 8: False}
    else:
        by_class = {1: True, 2: signed, 4: at.is_loopback or safe, 8: at.tls and signed}
    return by_class[of_class]


@cache
def _guard(strict: bool) -> Guard:
    guard = Guard(replace(RULES[strict], access_file=str(known())), Counters())
    guard.take_stored(Stored())
    return guard


def signed_requests(data: bytes) -> None:
    """Nothing is proven without the right HMAC, nor refused with it but by rules and limits, in either header."""
    command, again = read(lambda: decode(data[1:]), FrameError), read(lambda: decode(data[1:]), FrameError)
    if (
        command is None or again is None or not class_of(command.code)
    ):  # requests without a class are not judged
        assert command == again
        return
    at = Situation.of(data[0])
    _check(command, at)
    assert _judged(again, at) == _judged(command, at)
    ext = {name: value for name, value in (command.ext or {}).items() if name != SIGNATURE} | {KEY: at.key}
    name = sorted(ext)[data[0] % len(ext)]
    for secret in SECRETS[at.key]:
        right = _hmac(ext, command.body, secret, at.form)
        for given in (
            right,
            _altered(right, data[0] % len(right)),
            _hmac(ext, command.body, secret, at.form | {name}),
        ):
            _check(replace(command, ext={**ext, SIGNATURE: given}), at)
        _check(replace(command, ext={**ext, SIGNATURE: right, name: f"{ext[name]}x"}), at)
        _check(replace(command, ext={**ext, SIGNATURE: right}, body=command.body + b"x"), at)


def _altered(text: str, at: int) -> str:
    return f"{text[:at]}{chr(ord(text[at]) ^ 1)}{text[at + 1 :]}"


def _check(command: Command, at: Situation) -> None:
    """Judge a request as it is and in each encoding that keeps what it says."""
    verdict = _judged(command, at)
    _compare(verdict, command, at)
    for kind in SerializeType:
        if all(len(name.encode(errors="replace")) <= LONGEST_NAME for name in command.ext or ()):
            again = decode(encode(replace(command, serialize_type=kind))[4:])
            if (again.ext, again.body, again.code) == (command.ext, command.body, command.code):
                assert _without_request(_judged(again, at)) == _without_request(verdict)


def _compare(verdict: Verdict, command: Command, at: Situation) -> None:
    needs, fields = class_of(command.code), command.ext or {}
    key = fields.get(KEY, "")
    shows = key in SECRETS and (needs != AccessClass.READ or at.strict)
    proven = shows and _proves(fields, command.body)
    if verdict.proof is not None:
        assert proven, "a proof without a signature"
        assert verdict.proof.credential.startswith(f"acl:{key}#")
    classes = CLASSES[key] if proven else AccessClass(0)
    if key == "agent" and _beyond(fields, command.code):
        classes &= ~AccessClass.BROKER
    admitted = any(_admits(one, at, bool(one & classes)) for one in needs) and proven == shows
    if command.code != RequestCode.REGISTER_TOPIC_IN_NAMESRV or key != "agent":
        assert (verdict.refusal is None) == admitted, (at, verdict)
    assert verdict.refusal is None or verdict.proof is None


def _beyond(fields: Mapping[str, str], code: int) -> bool:
    """Return whether a broker's request names what is beyond the limits of `agent`."""
    named = {"clusterName": "c", "brokerName": "b"} if code in BROKERS_OWN else {}
    return any(not fields.get(name, begin).startswith(begin) for name, begin in named.items())


def _judged(command: Command, at: Situation) -> Verdict:
    peer = FakePeer(1, at.address)
    peer.via, peer.tls = Via.DIRECT, NoCertificate() if at.tls else None
    verdicts: list[Verdict] = []
    take: Callable[[Verdict], None] = verdicts.append
    _guard(at.strict).judge(command, peer, class_of(command.code), take)
    (verdict,) = verdicts
    assert verdict.refusal is not None or not verdict.ends
    return replace(verdict, ends=False)  # of a host that guesses the eleventh time


def _without_request(verdict: Verdict) -> Verdict:
    """Return a verdict to compare with that of another request: the limits of topics know which one they refuse."""
    limits = verdict.topics
    return verdict if limits is None else replace(verdict, topics=replace(limits, refuses=None))


def _proves(fields: Mapping[str, str], body: bytes) -> bool:
    """Return whether the signature is of a secret in force of the key, in one of the forms."""
    given = fields.get(SIGNATURE)
    return given is not None and any(
        given == _hmac(fields, body, secret, form)
        for secret in SECRETS[fields[KEY]]
        for form in LEFT_OUT
        if not form or not form.isdisjoint(fields)
    )


def _hmac(fields: Mapping[str, str], body: bytes, secret: str, left_out: frozenset[str]) -> str:
    names = fields.keys() - left_out - {SIGNATURE}
    text = "".join(fields[name] for name in sorted(names, key=_units))
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    signed = ALONE.sub("?", paired).encode() + body
    return base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha1).digest()).decode()


def _units(name: str) -> tuple[int, ...]:
    """Return a name as Java orders it: by its UTF-16 units."""
    units = name.encode("utf-16-be", "surrogatepass")
    return tuple(units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
