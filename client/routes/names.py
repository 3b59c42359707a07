"""Names and numbers that RocketMQ gives a meaning (MixAll)."""

from typing import Final

MASTER_ID: Final = 0
AUTO_CREATE_TOPIC: Final = "TBW102"
"""Its route is that of a topic that the first message to it will make."""
RETRY_PREFIX: Final = "%RETRY%"
"""With a group after it: the topic of what the group failed to consume."""
