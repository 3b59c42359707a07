"""Frames of lookups, sound and strange, and what decoding them says the reply is."""

import random
import struct
from collections.abc import Callable
from typing import Final

from registry.options.catalogue import Options
from rocketmq_remoting.codes import ResponseCode
from rocketmq_remoting.command import Command, encode_header
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, RESPONSE_FLAG
from rocketmq_remoting.version import CURRENT, V4_9_4, V5_0_0
from worker.cache.cached_requests import Answers, CachedRequests
from worker.cache.routes import RouteCache
from worker.cache.views import CLUSTER_INFO, Key, cache_key
from worker.counters import Counters
from worker.reply import Depends, Reply

MOST: Final = 1 << 20
Scan = Callable[[CachedRequests, bytes, float, int], Answers]

TOPICS: Final = ("T", "TA", "other", "longer", "%RETRY%g", "a b", "opaque", "x,y", "")
OPAQUES: Final = (
    "7",
    "1",
    "2",
    "10",
    "123456789",
    "0",
    "1234567890",
    "07",
    "-7",
    "7.0",
    '"7"',
    "7e0",
    " 7",
    "",
    "null",
)
VERSIONS: Final = (V4_9_4 - 1, V4_9_4, V5_0_0, CURRENT, 0, -1)
MEMBERS: Final = (
    '"language":"JAVA"', '"language":"GO"', '"language":9', '"serializeTypeCurrentRPC":"JSON"', '"remark":""',
    '"remark":"said"', '"remark":null', '"x":"\\"topic\\":\\"TA\\""', "'x':'\"topic\":\"TA\"'", '"x":"\\"opaque\\":7,"',
    '"x":{"topic":"TA"}', '"x":{"opaque":7,"y":1}', '"x":["topic",":","T"]', '"topic":"TA"', '"opaque":8',
    "/*c*/\"y\":1",
    '"code":106', '"code":105', '"flag":0', '"extFields":null', '"extFields":{"topic":"other"}', "y:1", '"y":1e400',
    '/*"topic":"*/"y":1', '"y":"\\', '"x":",\\"topic":"T"',
)  # fmt: skip
FIELDS: Final = (
    '"acceptStandardJsonOnly":"true"', '"acceptStandardJsonOnly":"false"', '"acceptStandardJsonOnly":true',
    '"__ZONE_NAME":"Z1","__ZONE_MODE":"true"', '"__ZONE_NAME":"\\ud800","__ZONE_MODE":"true"', '"a":"b"', '"a":1',
    '"topic":"other"', '"opaque":7', '"a":"topic"', '"a\\"topic":"TA"', '"__ZONE_MODE":"TRUE"', "b:'c'",
    '"\\u0074opic":"T"',
)  # fmt: skip
TOPIC_FORMS: Final = (
    '"topic":"{}"', '"topic":"{}"', '"topic":"{}"', '"topic":"{}"', '"topic": "{}"', "'topic':'{}'", 'topic:"{}"',
    '"topic":"\\u0054{}"', '"topic":"{}\\n"', '"topic":"\\"{}"', '"topic":"{}é"', '"topic":{}', '"a":\'x"topic":"{}"\'',
    '"a":"{}"', '"topic":"{}","topic":"T"', '"topic":"T","topic":"{}"', '"topic":"{}\t"', '"topic":"{}\x7f"',
)  # fmt: skip
BINARY_FIELDS: Final = (
    (b"acceptStandardJsonOnly", b"true"), (b"__ZONE_NAME", b"Z1"), (b"__ZONE_MODE", b"true"), (b"a", b"b"),
    (b"topic", b"TA"),
    (b"a", b"\0\x05topic\0\0\0\x01T"), (b"\0\x05topic", b"x"), (b"a", b"\xff\xfe"), (b"", b""), (b"topic", b"\xff"),
)  # fmt: skip
PIECES: Final = (
    b"", b'"', b"'", b"\\", b",", b":", b"{", b"}", b'"topic":"', b'"opaque":', b'"opaque":7,', b"\0\x05topic", b"\0",
    b"\xff", b"\x01", b"\x05", b"7", b" ", b"/*", b"*/", b"T", b"\n",
)  # fmt: skip
ODD_ENDS: Final = (b'"', b"\\", b"\xc3\xa9", b"\xff", b"\0")


class Lookups:
    """A route cache that has a reply of its own for each view of a topic; `scans` must find the same."""

    def __init__(self, *scans: Scan, limit: int = 1 << 22) -> None:
        self.counters = Counters()
        self.cache = RouteCache(limit, self.counters)
        self.options = Options()
        self._scans = scans

    def check(self, data: bytes) -> int:
        """Return how many of these bytes are answered without decoding; the replies must be those of decoding them."""
        found = [scan(self.cache.requests, data, 0.0, MOST) for scan in self._scans]
        replies = self.replies_to(data[: found[0][1]])
        for pieces, length, checks in found:
            assert (b"".join(pieces), length, checks) == (replies, found[0][1], [])
        return found[0][1]

    def replies_to(self, data: bytes) -> bytes:
        """Return what the decoded requests get, all of which must get something."""
        reader, replies = FrameReader(), b""
        reader.feed(data)
        while (command := reader.next_command()) is not None:
            assert command.opaque is not None
            assert not command.flag & (ONEWAY_FLAG | RESPONSE_FLAG)
            reply = self._reply(command)
            assert reply is not None
            assert not reply.code
            replies += encode_header(command.reply(reply.code, ext=reply.ext), len(reply.body)) + reply.body
        assert not reader.pending
        return replies

    def decode(self, frame: bytes, *, proven: bool = False) -> None:
        """Look a frame up as the service does, which caches the request; `proven`: its signature was verified."""
        reader = FrameReader()
        reader.feed(frame)
        try:
            command = reader.next_command()
        except FrameError:
            return
        if command is None or command.flag & RESPONSE_FLAG or self._reply(command) is None:
            return
        key = cache_key(command, self.options)
        assert key is not None
        if self.cache.get(key) is not None:
            self.cache.keep_request(
                key, frame[: 4 + struct.unpack_from(">i", frame)[0]], command, proven=proven
            )

    def fill(self, key: Key) -> Reply:
        """Have the reply kept under `key`, as a fill does."""
        depends = Depends(frozenset({"a"}))
        reply = Reply(body=repr(key).encode("utf-8", "replace"), depends=depends)
        if key is not CLUSTER_INFO and key[0] not in TOPICS:
            reply = Reply(ResponseCode.TOPIC_NOT_EXIST, "no", depends=depends)
        self.cache.end(self.cache.begin(key), reply)
        return reply

    def _reply(self, command: Command) -> Reply | None:
        key = cache_key(command, self.options)
        return None if key is None else self.cache.get(key) or self.fill(key)


def family(dice: random.Random) -> list[bytes]:
    """Return frames of one form, which differ in topic and opaque, and some in more."""
    form = _json_form(dice) if dice.random() < 0.6 else _binary_form(dice)
    frames = [form() for _ in range(dice.randint(2, 4))]
    while dice.random() < 0.6:
        change = _changed if dice.random() < 0.8 else _of_other_lengths
        frames.append(change(dice, dice.choice(frames)))
    dice.shuffle(frames)
    return frames


def json_frame(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">iI", 4 + len(header) + len(body), len(header)) + header + body


def _json_form(dice: random.Random) -> Callable[[], bytes]:
    plain = dice.random() < 0.5
    topic_form = TOPIC_FORMS[0] if plain else dice.choice(TOPIC_FORMS)
    code = 106 if dice.random() < 0.1 else 105
    fields = [] if plain else dice.choices(FIELDS, k=dice.randint(0, 2))
    fields.insert(dice.randint(0, len(fields)), "TOPIC")
    members = [
        f'"version":{dice.choice(VERSIONS)}',
        *dice.choices(MEMBERS, k=0 if plain else dice.randint(0, 3)),
    ]
    members += [f'"flag":{dice.choice((*[0] * 9, 1, 2, 4))}', "OPAQUE", "EXT"]
    if dice.random() < 0.95:
        members.append(f'"code":{code}')
    dice.shuffle(members)
    separator = dice.choice((",", ",", ",", ", ", ",,"))
    body = b"" if dice.random() < 0.9 else b'"topic":"T","opaque":7,'

    def form() -> bytes:
        topic = topic_form.format(dice.choice(TOPICS))
        ext = f'"extFields":{{{",".join(topic if field == "TOPIC" else field for field in fields)}}}'
        if code == 106 and dice.random() < 0.5:
            ext = '"x":1'
        opaque = f'"opaque":{dice.choice(OPAQUES) if dice.random() < 0.3 else dice.randint(0, 300)}'
        written = [{"OPAQUE": opaque, "EXT": ext}.get(member, member) for member in members]
        return json_frame(f"{{{separator.join(written)}}}".encode("utf-8", "surrogatepass"), body)

    return form


def _binary_form(dice: random.Random) -> Callable[[], bytes]:
    code = 106 if dice.random() < 0.1 else 105
    version, flag = dice.choice(VERSIONS), dice.choice((*[0] * 9, 1, 2, 4))
    remark = b"" if dice.random() < 0.85 else dice.choice((b"said", b"\0\x05topic\0\0\0\x01T"))
    fields = dice.choices(BINARY_FIELDS, k=dice.choice((0, 0, 0, 1, 2)))
    place = dice.randint(0, len(fields))
    after = b"" if dice.random() < 0.9 else b"more"
    body = b"" if dice.random() < 0.9 else b"body"

    def form() -> bytes:
        topic = dice.choice(TOPICS).encode()
        written = [*fields]
        if code == 105 or dice.random() < 0.5:
            written.insert(
                place,
                (
                    b"topic",
                    topic + dice.choice((b"", b"", b"", b"", b'"', b"\\", b"\xc3\xa9", b"\xff", b"\0")),
                ),
            )
        ext = b"".join(
            struct.pack(">h", len(name)) + name + struct.pack(">i", len(value)) + value
            for name, value in written
        )
        fixed = struct.pack(">hBhii", code, 0, version, dice.randint(-5, 300), flag)
        header = fixed + struct.pack(">i", len(remark)) + remark + struct.pack(">i", len(ext)) + ext + after
        return struct.pack(">iI", 4 + len(header) + len(body), 1 << 24 | len(header)) + header + body

    return form


def _of_other_lengths(dice: random.Random, frame: bytes) -> bytes:
    """Return a frame whose length or header word is another."""
    changed = bytearray(frame)
    changed[dice.choice((3, 4, 4, 7))] ^= dice.choice((1, 2, 3, 128))
    return bytes(changed)


def _changed(dice: random.Random, frame: bytes) -> bytes:
    """Return a frame some bytes of which are others; its own lengths mostly fit all the same."""
    changed = bytearray(frame)
    for _ in range(dice.randint(1, 2)):
        at = dice.randint(8, len(changed))
        changed[at : at + dice.choice((0, 0, 1, 1, 2, 9))] = dice.choice(PIECES)
    kind = dice.random()
    if kind < 0.9:
        longer = len(changed) - len(frame)
        length, word = struct.unpack_from(">iI", frame)
        changed[:8] = struct.pack(">iI", length + longer, word + longer & 0xFFFFFFFF)
        if frame[4] and kind < 0.7 and len(changed) > 29:
            changed[25:29] = struct.pack(">i", len(changed) - 29)
    return bytes(changed)
