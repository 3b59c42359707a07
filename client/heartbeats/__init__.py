"""What a client tells brokers about its producers and consumers."""
