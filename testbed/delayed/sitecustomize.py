"""Run by every Python that has this folder on PYTHONPATH (testbed.follower_delay)."""

from testbed.delayed_reads import delay_reads

delay_reads()
