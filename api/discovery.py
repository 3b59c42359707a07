"""Where RocketMQ's clients and brokers learn their name servers whose only setting is `rocketmq.namesrv.domain`.

They ask at their start and every two minutes (RocketMQ TopAddressing, MixAll.getWSAddr), take the first line of a 200,
and keep the list that they have at any other answer."""

from typing import Any

from apiflask import APIBlueprint
from flask import Response
from pydantic import BaseModel, ConfigDict, Field

from api.name_server_lists import name_server_lists
from api.probes import POLLED
from api.problems import Problem
from registry.options.addresses import UNIT

bp = APIBlueprint(POLLED, __name__, url_prefix="/rocketmq")


def _responses() -> dict[int | str, Any]:
    """Return what each operation says of its answers, which APIFlask changes."""
    return {
        200: {
            "description": "`host:port` of each name server, separated by `;`, in one line",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        503: "No name server is known that is ready; clients keep those that they have",
    }


class Parameters(BaseModel):
    """`nofix` is sent with a unit; clients of 5.x may send any others. None has an effect."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    nofix: str = Field("", description="has no effect; clients send 1 with a unit")


@bp.get("/nsaddr")
@bp.input(Parameters, location="query", arg_name="parameters")
@bp.doc(operation_id="getNameServers", responses=_responses())
def name_servers(parameters: Parameters) -> Response:
    """The name servers of clients without a unit

    Those of `discoveryAddress`, or the remoting workers that are ready, 1 s ago at most."""
    return _answer("")


@bp.get("/nsaddr-<unit>")
@bp.input(Parameters, location="query", arg_name="parameters")
@bp.doc(operation_id="getNameServersOfUnit", responses=_responses())
def name_servers_of_unit(unit: str, parameters: Parameters) -> Response:
    """The name servers of clients with a unit name

    Those that `discoveryUnits` has for it, or else those of clients without one."""
    if not UNIT.fullmatch(unit):
        detail = "no such path here: a unit's name is 1 to 64 letters, digits, dots, dashes and underscores"
        raise Problem(404, "", detail)
    return _answer(unit)


def _answer(unit: str) -> Response:
    """An empty list is no 200: clients would keep the list that they have, too, but Java's would not log why."""
    addresses = name_server_lists().of(unit)
    if not addresses:
        detail = (
            "no remoting worker that is ready has announced its address; see GET /readyz, or set discoveryAddress or "
            "advertiseAddress"
        )
        raise Problem(503, "no-name-server-ready", detail)
    response = Response(";".join(addresses) + "\n", mimetype="text/plain")
    response.headers["Cache-Control"] = "no-store"
    return response
