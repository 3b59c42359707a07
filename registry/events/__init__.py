"""The stream of events: what is on it beside changes, how it is trimmed, how it is replayed."""
