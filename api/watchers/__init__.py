"""Watchers of the event stream: connections that get changes as they are recorded (docs/watch.md)."""
