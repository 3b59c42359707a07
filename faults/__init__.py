"""Faults under load against the real service, and whether what is promised holds: `make faults` (faults/run.py)."""
