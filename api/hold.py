"""The hold of leases: after an outage, or of a mass expiry."""

from apiflask import APIBlueprint

from api.name_server import name_server, origin
from api.shapes import Written
from registry.expiry.holds import release

bp = APIBlueprint("hold", __name__, url_prefix="/v1/hold")


@bp.delete("")
@bp.output(Written)
@bp.doc(operation_id="deleteHold")
def release_hold() -> Written:
    """End the hold of leases

    Members whose lease is over leave routes at once; the next hold is for leases that end from now on. Without a hold
    it changes nothing."""
    server = name_server()
    return Written.of(server.run(release(server.keys, origin())))
