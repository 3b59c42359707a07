"""How many requests may wait for the store at once, and how many of them one peer may have."""
