"""Java's brokers, clients, name servers and mqadmin, and clients in C++, Go and Node: for tests, faults and bench."""
