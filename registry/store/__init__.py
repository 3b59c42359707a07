"""Connections to Redis: one server, Sentinel or Cluster."""
