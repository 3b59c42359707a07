"""Leases of workers, and the hold that keeps brokers when many leases end at once."""
