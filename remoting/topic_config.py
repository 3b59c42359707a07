"""TopicConfig: how a broker has set up one topic."""

import msgspec

from remoting.integers import Int32
from remoting.permission import PERM_READ, PERM_WRITE


class TopicConfig(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`order` and `topic_filter_type` travel from brokers but mean nothing to a name server."""

    topic_name: str
    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Int32 = PERM_READ | PERM_WRITE
    topic_sys_flag: Int32 = 0
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
