"""What a route was, what changed it, and by which actor: questions about a time that is over."""
