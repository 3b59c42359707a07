"""What a client makes of the routes of its topics."""
