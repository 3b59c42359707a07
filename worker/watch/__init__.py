"""What a worker watches beside its requests: the event stream, leases, closed connections."""
