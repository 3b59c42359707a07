"""What the name server knows, and the operations on it: plans over Redis, the rules of routes and leases."""
