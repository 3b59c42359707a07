"""The state of the name server and the operations on it: plans over Redis, the rules of routes and leases."""
