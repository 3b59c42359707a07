"""Queue data as it is stored: `readQ,writeQ,perm,sysFlag`, behind the broker's epoch and a comma; filter servers."""

from typing import Final

import msgspec

from rocketmq_remoting.permission import PERM_READ, PERM_WRITE
from rocketmq_remoting.route import QueueData
from rocketmq_remoting.topic_config import TopicConfig

_servers: Final = msgspec.json.Decoder(tuple[str, ...]).decode


def queue_text(config: TopicConfig | QueueData, *, without_write: bool = False) -> str:
    """Return what is stored of a topic's configuration."""
    perm = config.perm & ~PERM_WRITE if without_write else config.perm
    return f"{config.read_queue_nums},{config.write_queue_nums},{perm},{config.topic_sys_flag}"


def queue_data(name: str, text: str) -> QueueData:
    """Return the queue data of broker `name` that `text` (without its epoch) stands for."""
    read, write, perm, flag = text.split(",")
    return QueueData(name, int(read), int(write), int(perm), int(flag))


def filter_servers(text: str) -> tuple[str, ...]:
    """Return the filter servers of a member, which are stored as JSON; none of damage, which the repair drops."""
    try:
        return _servers(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ()


def wiped(text: str) -> str:
    """Return the text without the write bit (RocketMQ WIPE_WRITE_PERM_OF_BROKER)."""
    read, write, perm, flag = text.split(",")
    return f"{read},{write},{int(perm) & ~PERM_WRITE},{flag}"


def restored(text: str) -> str:
    """Return the text with read and write permission (RocketMQ ADD_WRITE_PERM_OF_BROKER)."""
    read, write, _, flag = text.split(",")
    return f"{read},{write},{PERM_READ | PERM_WRITE},{flag}"


def current(stored: dict[str, str], epoch: str) -> dict[str, str]:
    """Return the fields of this epoch, without it."""
    start = f"{epoch},"
    return {topic: text[len(start) :] for topic, text in stored.items() if text.startswith(start)}
