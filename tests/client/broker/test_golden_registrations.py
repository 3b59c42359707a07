"""What an agent sends is, byte for byte, what captured brokers sent: from a configuration, nothing is copied."""
