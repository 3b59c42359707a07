"""Shapes of JSON of several subjects. Members are spelt as RocketMQ spells them; unknown members are refused."""

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from api.times import LAST_MS, parse_time
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.route import QueueData

T = TypeVar("T")
Int32 = Annotated[int, Field(ge=0, le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=0, le=2**63 - 1)]


def _array(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise PydanticCustomError("array", "not an array")
    return value


Many = Annotated[tuple[T, ...], Field(strict=False), BeforeValidator(_array)]
"""A JSON array: strictness would ask for Python's own tuple, and say so."""


def items(most: int, least: int = 0) -> Any:
    """Return the bounds of how many items `Many` has; its schema would have those of a text."""

    def of_array(schema: dict[str, Any]) -> None:
        schema.pop("minLength", None)
        del schema["maxLength"]
        schema |= {"minItems": least, "maxItems": most}

    return Field(min_length=least, max_length=most, json_schema_extra=of_array)


NAME = re.compile(r"[^\x00-\x20\x7f]{1,255}")
HOST = r"(?:[^\x00-\x20\x7f:/\[\]]{1,255}|\[[0-9A-Fa-f:.]{2,45}(?:%[^\x00-\x20\x7f:/\[\]]{1,64})?\])"
HOST_AND_PORT = re.compile(f"{HOST}:([0-9]{{1,5}})")
PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise PydanticCustomError("name", "not 1 to 255 characters without blanks and control characters")
    return text


def _line(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("line", "not one line of printable text")
    return text


def _address(text: str) -> str:
    match = HOST_AND_PORT.fullmatch(text)
    if not match or not 0 < int(match[1]) < 65536:
        raise PydanticCustomError("address", "not host:port, or [host]:port of IPv6")
    return text


Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"})]
"""The name of a cluster, broker or topic."""
Address = Annotated[str, AfterValidator(_address), Field(json_schema_extra={"pattern": f"^{HOST}:({PORT})$"})]
"""`host:port`"""
Line = Annotated[str, AfterValidator(_line)]
"""One line for people."""


def _moment(text: object) -> object:
    try:
        return parse_time(text) if isinstance(text, str) else text
    except ValueError as error:
        raise PydanticCustomError("moment", "{why}", {"why": str(error)}) from None


Moment = Annotated[
    int,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": LAST_MS},
                {
                    "type": "string",
                    "format": "date-time",
                    "pattern": "^(197[1-9]|19[89][0-9]|[2-9][0-9]{3})-",
                },
            ]
        }
    ),
]
"""Unix ms, or a time as RFC 3339 writes it."""
ENTRY_ID = re.compile("[0-9]{1,19}-[0-9]{1,19}")


def _entry_id(text: str) -> str:
    if not ENTRY_ID.fullmatch(text):
        raise PydanticCustomError("entry_id", "not the id of an entry, such as 1795255839125-0")
    return text


EntryId = Annotated[
    str, AfterValidator(_entry_id), Field(json_schema_extra={"pattern": f"^{ENTRY_ID.pattern}$"})
]
"""The id of an entry of a stream."""


class Body(BaseModel):
    """A JSON body of a request: no other members, and numbers are no text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


class Query(BaseModel):
    """The parameters of a request."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class Answer(BaseModel):
    """A JSON body of a reply."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Written(Answer):
    """`eventId` is the last entry of the event stream that the request wrote, null when it changed nothing."""

    event_id: str | None

    @classmethod
    def of(cls, event_id: str) -> "Written":
        return cls(event_id=event_id or None)


class DataVersionAnswer(Answer):
    """The state of a broker's topics; `timestamp` is in ms by the broker's clock."""

    state_version: int
    timestamp: int
    counter: int

    @classmethod
    def of(cls, version: DataVersion | None) -> "DataVersionAnswer | None":
        if version is None:
            return None
        return cls(state_version=version.state_version, timestamp=version.timestamp, counter=version.counter)


class TopicNumbers(Body):
    """Queues and permissions of a topic on one broker: 4 read, 2 write; defaults are RocketMQ's."""

    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Annotated[int, Field(ge=0, le=15)] = PERM_READ | PERM_WRITE
    topic_sys_flag: Int32 = 0


class QueueDataBody(TopicNumbers):
    """Queue data of one topic, named by its broker."""

    broker_name: Name

    def value(self) -> QueueData:
        return QueueData(
            self.broker_name, self.read_queue_nums, self.write_queue_nums, self.perm, self.topic_sys_flag
        )


class QueueDataAnswer(Answer):
    """Queue data as routes show it."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int

    @classmethod
    def of(cls, data: QueueData) -> "QueueDataAnswer":
        return cls(
            broker_name=data.broker_name,
            read_queue_nums=data.read_queue_nums,
            write_queue_nums=data.write_queue_nums,
            perm=data.perm,
            topic_sys_flag=data.topic_sys_flag,
        )
