"""The calls that a name server answers, typed."""
