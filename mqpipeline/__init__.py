"""The event stream as tables and reports: PySpark, from a laptop to a cluster.

Imports nothing of the name server. What the two share: the event stream (docs/events.md), the keys of the served
reports (mqpipeline/serving/names.py) and two job queues (mqpipeline/job_queue.py).
"""
