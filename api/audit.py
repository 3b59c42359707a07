"""Operators' changes page by page: the copies that outlive the event stream, and those that have none yet."""

from apiflask import APIBlueprint

from api.entries import Entries, EntriesQuery, entries
from registry.events.pages import audit_ranges

bp = APIBlueprint("audit", __name__, url_prefix="/v1/audit")


@bp.get("")
@bp.input(EntriesQuery, location="query")
@bp.output(Entries)
@bp.doc(operation_id="listAuditEntries")
def audit(query_data: EntriesQuery) -> Entries:
    """Operators' changes, oldest or newest first

    Each once, whether it is in the event stream still or only its copy is left."""
    return entries(query_data, audit_ranges)
