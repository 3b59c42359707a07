"""What can go wrong in the registry. Neither wire codes nor HTTP statuses: each edge maps these in one table."""

from registry.holder import Holder


class RegistryError(Exception):
    """The base of them all; its text is one line for people."""


class InvalidField(RegistryError, ValueError):
    """A value that cannot be stored; `field` is its name in the request."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class LimitReached(RegistryError):
    """What would be stored is more than an option allows; nothing of it was. `option` is its key; `what` would be more,
    where the option does not say it."""

    def __init__(self, option: str, most: int, subject: str, what: str = "") -> None:
        super().__init__(f"{subject}: more than {option}={most} allows{what and f' ({what})'}")
        self.option = option


class TableFull(RegistryError):
    """A table of fixed size has no place, and nothing was stored; `cure` is what makes one."""

    def __init__(self, subject: str, most: int, what: str, cure: str) -> None:
        super().__init__(f"{subject}: there are {most} {what}, the most there may be; {cure}")


class StoreUnavailable(RegistryError):
    """Redis did not answer, or answered that it cannot serve now: whether a request took effect is unknown."""


class ValueDamaged(RegistryError):
    """A value of the store is none, and nothing else has it: an operator has to write it again."""


class TopicNotFound(RegistryError):
    """No live broker has queue data of this topic: read, and absent."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"no route of topic {topic!r}")
        self.topic = topic


class BrokerNotFound(RegistryError):
    """No member is registered under this broker name, or at this address."""


class ConfigNotFound(RegistryError):
    """No such KV namespace, or no such key in it."""


class ComparisonNotFound(RegistryError):
    """No result of a comparison of name servers under this name."""


class ConditionFailed(RegistryError):
    """A condition on the tag of a value does not hold, so nothing was done. `tag` is its tag, "" without a value."""

    def __init__(self, namespace: str, key: str, tag: str) -> None:
        state = f"has the entity tag {tag}" if tag else "has no value"
        super().__init__(f"{key!r} of KV namespace {namespace!r} {state}: the condition does not hold")
        self.tag = tag


class RegistrationRefused(RegistryError):
    """A first registration with exactly one topic (RocketMQ 5.x, single-topic registration)."""


class BrokerBusy(RegistryError):
    """Another registration of the same broker claimed it for too long; the broker repeats its own."""


class NotOwner(RegistryError):
    """A request about a broker that is for its owner only; nothing of it was done. `holder` is the member in its way,
    None of a request that is for the owner whether others could remove that member or not."""

    def __init__(self, name: str, actor: str, holder: Holder | None = None) -> None:
        super().__init__(f"{actor} is not the owner of broker {name!r}")
        self.name = name
        self.actor = actor
        self.holder = holder


class OwnRegistration(RegistryError):
    """A mirror's request about what a living member registered itself, or about that of another mirror, which reads the
    name servers `mirrored`; nothing of it was done."""

    def __init__(self, name: str, cluster: str, address: str, mirrored: str) -> None:
        how = f"is mirrored from {mirrored}" if mirrored else "registered itself"
        super().__init__(f"broker {name!r}: {address} of cluster {cluster!r} {how}")


class IdentityConflict(RegistryError):
    """A registration would take the id of another living address, or a name into a second cluster; nothing of it was
    done. `holder` is the member that has it."""

    def __init__(self, name: str, broker_id: str, cluster: str, cause: str, holder: Holder) -> None:
        other = f"{holder.address} of cluster {holder.cluster!r} lives"
        if cause == "two_clusters":
            text = f"broker {name!r} is of another cluster than {cluster!r}: there {other}"
        else:
            text = f"id {broker_id} of broker {name!r} is taken: {other} there"
        super().__init__(f"{text} (identityConflicts=refuse)")
        self.name = name
        self.holder = holder


class SettingsRefused(RegistryError):
    """An update names an option of the black list; nothing of it was applied. `field` is the option's, by HTTP."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is on the black list")
        self.field = f"settings.{key}"


def cause_of(error: BaseException) -> str:
    """Return the text of any error; the name of its type where it has none, as asyncio's TimeoutError."""
    return str(error) or type(error).__name__
