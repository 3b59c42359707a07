"""What a route was, what changed it, and who did: questions about a time that is over."""
