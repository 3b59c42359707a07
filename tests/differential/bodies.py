"""Bodies of registrations: their odd forms as text, and how they are packed once names are filled in."""

import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from testbed.broker import crc

RIGHT = "right"
"""A value of bodyCrc32: the checksum of the bytes that are sent."""


class Oddity(Struct, frozen=True):
    """`rewrite` turns the text of the body into an odd one; `edit` changes the wrapper before it is text.

    `readable` is whether Java 5.5.0 can read it, `says` what the registration then says otherwise."""

    readable: bool = True
    rewrite: Callable[[str], str] = str
    edit: Callable[[dict[str, Any]], None] = lambda whole: None
    says: dict[str, Any] = {}


EMPTY: dict[str, Any] = {"topics": (), "infos": ()}
MOMENT: dict[str, Any] = {"version": None}
WRAPPER = "topicConfigSerializeWrapper"


def _of_wrapper(**members: Any) -> Callable[[dict[str, Any]], None]:
    return lambda whole: whole[WRAPPER].update(members)


def _without(member: str) -> Callable[[dict[str, Any]], None]:
    return lambda whole: whole[WRAPPER].pop(member)


def _of_topics(**members: Any) -> Callable[[dict[str, Any]], None]:
    def edit(whole: dict[str, Any]) -> None:
        for topic in whole[WRAPPER]["topicConfigTable"].values():
            topic.update(members)

    return edit


def _without_of_topics(member: str) -> Callable[[dict[str, Any]], None]:
    def edit(whole: dict[str, Any]) -> None:
        for topic in whole[WRAPPER]["topicConfigTable"].values():
            topic.pop(member)

    return edit


def _other_keys(whole: dict[str, Any]) -> None:
    table = whole[WRAPPER]["topicConfigTable"]
    whole[WRAPPER]["topicConfigTable"] = {f"{key}-key": topic for key, topic in table.items()}


ODDITIES: dict[str, Oddity] = {
    "nothing": Oddity(rewrite=lambda text: "", says=EMPTY | {"version": (0, 0, 0)}),
    "an empty object": Oddity(rewrite=lambda text: "{}", says=EMPTY | MOMENT),
    "no JSON": Oddity(False, lambda text: "not json"),
    "cut": Oddity(False, lambda text: text[:-3]),
    "garbage behind": Oddity(False, lambda text: text + "x"),
    "an array": Oddity(False, lambda text: "[]"),
    "a null": Oddity(False, lambda text: "null"),
    "a number": Oddity(False, lambda text: "12"),
    "a blank in front": Oddity(rewrite=lambda text: " \n" + text),
    "a comment": Oddity(rewrite=lambda text: text[:-1] + "/* - */}"),
    "a comma too many": Oddity(rewrite=lambda text: text[:-1] + ",}"),
    "null wrapper": Oddity(
        edit=lambda whole: whole.update({WRAPPER: None}), says=EMPTY | MOMENT | {"null_member": True}
    ),
    "no wrapper": Oddity(edit=lambda whole: whole.pop(WRAPPER), says=EMPTY | MOMENT),
    "null table": Oddity(edit=_of_wrapper(topicConfigTable=None), says={"topics": (), "null_member": True}),
    "no table": Oddity(edit=_without("topicConfigTable"), says={"topics": ()}),
    "null dataVersion": Oddity(edit=_of_wrapper(dataVersion=None), says=MOMENT | {"null_member": True}),
    "no dataVersion": Oddity(edit=_without("dataVersion"), says=MOMENT),
    "no timestamp": Oddity(edit=_of_wrapper(dataVersion={"counter": 1}), says=MOMENT),
    "no counter": Oddity(edit=_of_wrapper(dataVersion={"timestamp": 1000}), says={"version": (0, 1000, 0)}),
    "a number as text": Oddity(edit=_of_topics(perm="4")),
    "a word as number": Oddity(edit=_of_topics(perm="rw")),
    "null perm": Oddity(edit=_of_topics(perm=None)),
    "no perm": Oddity(edit=_without_of_topics("perm")),
    "no queues": Oddity(edit=_without_of_topics("readQueueNums")),
    "perm beyond 32 bits": Oddity(edit=_of_topics(perm=1 << 31)),
    "perm with a fraction": Oddity(edit=_of_topics(perm=4.0)),
    "negative queues": Oddity(edit=_of_topics(readQueueNums=-1)),
    "unknown filter type": Oddity(edit=_of_topics(topicFilterType="WHAT")),
    "filter type by number": Oddity(edit=_of_topics(topicFilterType=1)),
    "unknown members": Oddity(edit=_of_topics(what={"a": [1, None]}, attributes={"+k": "v"})),
    "other keys": Oddity(edit=_other_keys),
    "filter servers as text": Oddity(edit=lambda whole: whole.update(filterServerList="f:1")),
    "filter servers as empty text": Oddity(edit=lambda whole: whole.update(filterServerList="")),
    "filter servers by number": Oddity(edit=lambda whole: whole.update(filterServerList=[1])),
    "no UTF-8": Oddity(False, lambda text: text[:-1] + ',"filterServerList":["\udcff"]}'),
    "a byte order mark": Oddity(False, lambda text: "\ufeff" + text),
    "no topicName": Oddity(edit=_without_of_topics("topicName")),
}
UNANNOUNCED, WITHOUT_STATIC = "zlib unannounced", "zlib without static part"
LAYOUTS = ("zlib", "zlib cut", "zlib and more", UNANNOUNCED, WITHOUT_STATIC, "raw deflate", "plain announced")
"""Packings of a body whose text is a whole RegisterBrokerBody; the last part follows from the version sent."""


def packed(text: str, packing: str, version: int) -> bytes:
    """Return the body as it is sent."""
    data = text.encode(errors="surrogateescape")
    if not packing or packing == "plain announced":
        return data
    content = _layout(json.loads(text), static_topics=version >= 413 and packing != WITHOUT_STATIC)
    match packing:
        case "zlib cut":
            return zlib.compress(content)[:-6]
        case "zlib and more":
            return zlib.compress(content + b"more")
        case "raw deflate":
            return zlib.compress(content)[2:-4]
    return zlib.compress(content)


def _layout(whole: dict[str, Any], *, static_topics: bool) -> bytes:
    wrapper = whole[WRAPPER]
    topics = wrapper["topicConfigTable"].values()
    infos = wrapper.get("topicQueueMappingInfoMap", {}).values()
    parts = [_sized(json.dumps(wrapper["dataVersion"])), struct.pack(">i", len(topics))]
    tail = " {}" if static_topics else ""
    for topic in topics:
        numbers = f"{topic['readQueueNums']} {topic['writeQueueNums']} {topic['perm']}"
        parts.append(_sized(f"{topic['topicName']} {numbers} SINGLE_TAG{tail}"))
    parts.append(_sized(json.dumps(whole["filterServerList"])))
    if static_topics:
        parts.append(struct.pack(">i", len(infos)))
        parts += [_sized(json.dumps(info)) for info in infos]
    return b"".join(parts)


def _sized(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">i", len(data)) + data


def checked(ext: dict[str, str] | None, body: bytes) -> dict[str, str] | None:
    """Return the fields with the checksum filled in."""
    if ext is None or ext.get("bodyCrc32") != RIGHT:
        return ext
    return ext | {"bodyCrc32": crc(body)}
