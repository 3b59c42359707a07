"""The brokers of one name, and which of them has the smallest id: whoever has it acts when there is no master."""

from client.broker.config import BrokerConfig
from client.broker.events import MinBrokerIdChanged
from remoting.cluster import decode_broker_member_group
from remoting.command import Command
from remoting.route import decode_route


def read_members(config: BrokerConfig, answer: Command) -> dict[int, str]:
    """Broker id -> address, of the answer to `messages.member_group`. BodyError."""
    if not config.compatible_with_old_name_srv:
        return decode_broker_member_group(answer.body).broker_addrs
    datas = decode_route(answer.body).broker_datas
    return next((data.broker_addrs for data in datas if data.broker_name == config.broker_name), {})


def read_change(push: Command) -> MinBrokerIdChanged | None:
    """What a name server says in NOTIFY_MIN_BROKER_ID_CHANGE (905); None when that is no id."""
    try:
        smallest = int(push.get("minBrokerId") or "")
    except ValueError:
        return None
    return MinBrokerIdChanged(
        smallest, push.get("minBrokerAddr"), push.get("offlineBrokerAddr"), push.get("haBrokerAddr")
    )
