"""Histories of registrations and lookups, recorded by clients and judged by their replies (docs/consistency.md).

recorder = Recorder(["127.0.0.1:9876"])
recorder.start()
...                                     # faults, timed with time.monotonic()
report = judge(recorder.stop(), outages=[Outage(began_s, ended_s)])
assert report.ok, report
"""

from faults.history.clients import Recorder, Scale
from faults.history.judgement import Complaint, Report, furthest_behind_s, judge
from faults.history.model import Model, Outage
from faults.history.operations import CLUSTERS, History, Operation, Register, Value

__all__ = [
    "CLUSTERS",
    "Complaint",
    "History",
    "Model",
    "Operation",
    "Outage",
    "Recorder",
    "Register",
    "Report",
    "Scale",
    "Value",
    "furthest_behind_s",
    "judge",
]
