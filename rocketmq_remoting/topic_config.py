"""TopicConfig: the configuration of a topic on a broker."""

import msgspec

from rocketmq_remoting.integers import Int32
from rocketmq_remoting.permission import PERM_READ, PERM_WRITE


class TopicConfig(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A topic's queues and permission; `order` and `topic_filter_type` are sent but not used by name servers."""

    topic_name: str
    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Int32 = PERM_READ | PERM_WRITE
    topic_sys_flag: Int32 = 0
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
