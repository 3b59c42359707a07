"""Bodies of registrations, good and bad, as big as a frame may be."""

import json
import zlib
from collections.abc import Callable, Iterator
from struct import pack

from msgspec import Struct

LARGEST = 16_700_000


class Case(Struct, frozen=True):
    """One body, made when it is wanted; `registered` makes one that the broker has registered before."""

    name: str
    body: Callable[[], bytes]
    compressed: bool = False
    version: int = 513
    registered: Callable[[], bytes] | None = None


def json_body(topics: int, *, counter: int = 1, mappings: int = 0, order: bool = False) -> bytes:
    """Return a body as a broker of 5.x writes it; with `order` its members in another order."""
    table = {
        f"Topic-{i:06d}": {
            "attributes": {},
            "order": False,
            "perm": 6,
            "readQueueNums": 8,
            "topicFilterType": "SINGLE_TAG",
            "topicName": f"Topic-{i:06d}",
            "topicSysFlag": 0,
            "writeQueueNums": 8,
        }
        for i in range(topics)
    }
    if order:
        table = {name: dict(reversed(members.items())) for name, members in table.items()}
    version = {"counter": counter, "stateVersion": 0, "timestamp": 1700000000000}
    infos = ",".join(
        f'"S{i}":{{"bname":"b1","currIdMap":{{{",".join(f"{q}:{q}" for q in range(8))}}},"dirty":false,"epoch":1,'
        f'"scope":"__global__","topic":"S{i}","totalQueues":8}}'
        for i in range(mappings)
    )
    text = json.dumps(table, separators=(",", ":"))
    head = json.dumps(version, separators=(",", ":"))
    return (
        f'{{"filterServerList":[],"topicConfigSerializeWrapper":{{"dataVersion":{head},"mappingDataVersion":{head},'
        f'"topicConfigTable":{text},"topicQueueMappingDetailMap":{{}},"topicQueueMappingInfoMap":{{{infos}}}}}}}'
    ).encode()


def zlib_body(topics: int, more: bytes = b"") -> bytes:
    """The compressed layout."""

    def part(text: bytes) -> bytes:
        return pack(">i", len(text)) + text

    lines = b"".join(part(b"Topic-%06d 8 8 6 SINGLE_TAG {}" % i) for i in range(topics))
    version = part(b'{"counter":1,"timestamp":1700000000000}')
    return zlib.compress(version + pack(">i", topics) + lines + part(b"[]") + pack(">i", 0) + more, 1)


def filled(start: bytes, unit: bytes, end: bytes = b"") -> bytes:
    return start + unit * ((LARGEST - len(start) - len(end)) // len(unit)) + end


def cases() -> Iterator[Case]:
    yield Case("10 topics", lambda: json_body(10))
    yield Case("1,000 topics", lambda: json_body(1000))
    yield Case("10,000 topics", lambda: json_body(10_000))
    yield Case(
        "10,000 topics again, new version",
        lambda: json_body(10_000, counter=2),
        registered=lambda: json_body(10_000),
    )
    yield Case(
        "10,000 topics, one changed",
        lambda: json_body(10_000, counter=2).replace(b'"writeQueueNums":8', b'"writeQueueNums":4', 1),
        registered=lambda: json_body(10_000),
    )
    yield Case("10,000 topics, members in another order", lambda: json_body(10_000, order=True))
    yield Case("1,000 static topics", lambda: json_body(1000, mappings=1000))
    yield Case("10,000 topics, compressed", lambda: zlib_body(10_000), compressed=True)
    yield Case("70,000 topics", lambda: json_body(70_000))
    yield Case("70,000 topics, compressed", lambda: zlib_body(70_000), compressed=True)
    yield Case("64 MB of zeros, compressed", lambda: zlib.compress(bytes(64 << 20), 9), compressed=True)
    yield Case(
        "200,000 lines of one topic, compressed",
        lambda: zlib.compress(
            pack(">i", 2) + b"{}" + pack(">i", 200_000) + (pack(">i", 11) + b"T 8 8 6 S {") * 200_000, 1
        ),
        compressed=True,
    )
    yield Case(
        "60 MB of topic lines, compressed",
        lambda: zlib.compress(
            pack(">i", 2) + b"{}" + pack(">i", 1 << 30) + (pack(">i", 11) + b"T 8 8 6 S {") * (60 << 16),
            1,
        ),
        compressed=True,
    )
    wrapper = b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{},"topicConfigTable":{'
    yield Case("bare keys", lambda: filled(b"{", b"1:2,", b"3:4}"))
    yield Case("bare keys as topics", lambda: filled(wrapper, b"1:{},", b"3:{}}}}"))
    yield Case(
        "bare keys in a topic", lambda: filled(wrapper + b'"T":{"topicName":"T",', b"1:2,", b"3:4}}}}")
    )
    yield Case(
        "topics of one letter",
        lambda: filled(wrapper, b'"a":{"topicName":"a"},', b'"b":{"topicName":"b"}}}}'),
    )
    yield Case("filter servers", lambda: filled(b'{"filterServerList":[', b'"",', b'""]}'))
    yield Case("unknown members", lambda: filled(b"{", b'"a":[],', b'"b":0}'))
    yield Case("one long name", lambda: filled(wrapper + b'"', b"x", b'":{"topicName":"T"}}}}'))
    yield Case("blanks", lambda: filled(wrapper, b" ", b"}}}"))
    yield Case("no topic's end", lambda: filled(wrapper + b'"T":{"topicName":"T","a":[', b"[],", b"[]]}}}}"))
    yield Case("brackets", lambda: filled(b"", b"["))
    yield Case("nested objects", lambda: filled(wrapper, b'{"a":'))
    yield Case(
        "single quotes", lambda: filled(wrapper, b"'a':{'topicName':'a'},", b"'b':{'topicName':'b'}}}}")
    )
    yield Case("a comment", lambda: filled(wrapper + b"/*", b"*", b"*/}}}"))
    yield Case("escapes", lambda: filled(wrapper + b'"T":{"topicName":"', b"\\'", b'"}}}}'))
