"""Heartbeats of a client with its producer and consumer groups."""
