"""Findings of the name server about itself, as a scheduler counted them last."""

from metrics.catalogue import DOCTOR_FINDINGS
from metrics.samples import Sample
from registry.doctor.findings import counted
from registry.keys import Keys
from registry.plans import Plan

__all__ = ["read"]


def read(keys: Keys) -> Plan[list[Sample]]:
    """Return the counts of all findings; none where nothing was counted for ten minutes."""
    counts = yield from counted(keys)
    return [Sample(DOCTOR_FINDINGS, (name,), number) for name, number in counts.items()]
