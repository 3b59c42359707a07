"""The keys of the served reports that no row of the catalogue names, `ns:{<namespace>}:report:<name>`."""

META = "meta"


def prefix(namespace: str) -> str:
    """Return what all keys of a namespace's reports begin with; the braces keep them in one slot of a cluster."""
    return f"ns:{{{namespace}}}:report:"
