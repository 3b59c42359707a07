"""The event stream as tables and reports: PySpark, from a laptop to a cluster.

Imports nothing of the name server; what the two share is the stream (docs/events.md).
"""
