"""Run by every Python that has this folder on PYTHONPATH (testbed.follower_delay)."""

from testbed.follower_delay import delay_reads

delay_reads()
