"""Configuration of the name server: 318, 319."""

from collections.abc import Mapping
from typing import Final

from registry import settings
from registry.errors import SettingsRefused
from registry.options import SECRETS, acceptable, black_list, listing
from registry.plans import Plan
from remoting.codes import RequestCode
from remoting.properties import PropertiesError, format_properties, parse_properties
from worker.answer import Answer, Handled, Request
from worker.dispatch import failure, handles

BODY_MOST: Final = 16 << 10
"""Bytes of a change of options, which is read at once; all options together are 4 KB."""


@handles(RequestCode.UPDATE_NAMESRV_CONFIG)
def update_namesrv_config(request: Request) -> Handled:
    """All or nothing where the black list is concerned; unknown keys and unparsable numbers are passed over."""
    body = request.command.body
    if len(body) > BODY_MOST:
        return failure(f"a body of {len(body)} bytes, of {BODY_MOST} at most")
    try:
        wanted = parse_properties(body.decode("utf-8", "replace"))
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
