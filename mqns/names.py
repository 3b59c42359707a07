"""Names and numbers with a meaning in RocketMQ (MixAll, TopicValidator, NamesrvUtil)."""

from typing import Final

MASTER_ID: Final = 0
AUTO_CREATE_TOPIC: Final = "TBW102"
"""Brokers that create topics on demand give a new topic the queues of this one."""
RETRY_PREFIX: Final = "%RETRY%"
"""Before a group name: the topic of the messages that the group failed to consume."""
ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"
"""The KV namespace of order topics."""
