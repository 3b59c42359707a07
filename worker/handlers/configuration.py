"""Configuration of the name server: 318, 319."""

from collections.abc import Mapping

from registry import settings
from registry.errors import SettingsRefused
from registry.options import SECRETS, acceptable, black_list, listing
from registry.plans import Plan
from remoting.codes import RequestCode
from remoting.properties import PropertiesError, format_properties, parse_properties
from worker.answer import Answer, Handled, Request
from worker.dispatch import failure, handles


@handles(RequestCode.UPDATE_NAMESRV_CONFIG)
def update_namesrv_config(request: Request) -> Handled:
    """All or nothing where the black list is concerned; unknown keys and unparsable numbers are passed over."""
    try:
        wanted = parse_properties(request.command.body.decode("utf-8", "replace"))
    except PropertiesError:
        return failure("string2Properties error")
    if not black_list(request.options).isdisjoint(wanted):
        raise SettingsRefused("an option of the black list")
    taken = acceptable(request.options, wanted)
    return _updated(request, taken) if taken else Answer()


@handles(RequestCode.GET_NAMESRV_CONFIG)
def get_namesrv_config(request: Request) -> Answer:
    """Body: `key=value` lines, sorted, with the values in force."""
    return Answer(body=format_properties(dict(listing(request.options))).encode())


def _updated(request: Request, taken: Mapping[str, str]) -> Plan[Answer]:
    event_id = yield from settings.update(request.keys, taken, request.act, hidden=SECRETS)
    return Answer(event_id=event_id)
