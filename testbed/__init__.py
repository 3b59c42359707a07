"""Helpers of tests, faults and bench: servers, processes, brokers, clients, load, and waiting."""
