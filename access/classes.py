"""Classes of requests: what a rule is about. Every request code and every HTTP route has one, or is open to all."""

from collections.abc import Mapping
from enum import IntFlag
from typing import Final

from rocketmq_remoting.codes import RequestCode as Code

__all__ = ["ALL", "OPEN", "OPERATORS", "REMOTING", "AccessClass", "class_of"]


class AccessClass(IntFlag):
    """One bit each, so that a set of them is a number."""

    READ = 1
    BROKER = 2
    ADMIN = 4
    CONFIG = 8
    AUDIT = 16
    METRICS = 32

    @property
    def label(self) -> str:
        """Its name in options, remarks and metrics, that of the first of several."""
        return str(next(iter(self)).name).lower()


OPEN: Final = AccessClass(0)
"""Of what everyone may ask: probes, and codes that are none."""
ALL: Final = AccessClass(sum(AccessClass))
OPERATORS: Final = AccessClass.ADMIN | AccessClass.CONFIG
"""What operators do: not to be open to any caller, and counted."""

READ: Final = (
    *(Code.GET_ROUTEINFO_BY_TOPIC, Code.GET_BROKER_CLUSTER_INFO, Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
    *(Code.GET_TOPICS_BY_CLUSTER, Code.GET_SYSTEM_TOPIC_LIST_FROM_NS, Code.GET_UNIT_TOPIC_LIST),
    *(Code.GET_HAS_UNIT_SUB_TOPIC_LIST, Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST),
    *(Code.GET_KV_CONFIG, Code.GET_KVLIST_BY_NAMESPACE),
)
BROKER: Final = (
    *(Code.REGISTER_BROKER, Code.UNREGISTER_BROKER, Code.QUERY_DATA_VERSION),
    *(Code.GET_BROKER_MEMBER_GROUP, Code.BROKER_HEARTBEAT),
)
ADMIN: Final = (
    *(Code.PUT_KV_CONFIG, Code.DELETE_KV_CONFIG, Code.WIPE_WRITE_PERM_OF_BROKER),
    *(Code.ADD_WRITE_PERM_OF_BROKER, Code.DELETE_TOPIC_IN_NAMESRV),
)
REMOTING: Final[Mapping[int, AccessClass]] = {
    **dict.fromkeys(READ, AccessClass.READ),
    **dict.fromkeys(BROKER, AccessClass.BROKER),
    **dict.fromkeys(ADMIN, AccessClass.ADMIN),
    Code.REGISTER_TOPIC_IN_NAMESRV: AccessClass.BROKER | AccessClass.ADMIN,
    Code.UPDATE_NAMESRV_CONFIG: AccessClass.CONFIG,
    Code.GET_NAMESRV_CONFIG: AccessClass.CONFIG,
    Code.CHECK_READINESS: OPEN,
}
"""By request code; with two classes, either is enough: a topic is registered by its broker, or by an operator."""


def class_of(code: int) -> AccessClass:
    """Return the class of a request on the wire; a code that has none gets the answer of unknown codes."""
    return REMOTING.get(code, OPEN)
