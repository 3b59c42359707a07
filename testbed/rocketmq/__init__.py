"""Java's own brokers, clients, name servers and mqadmin, for tests, faults and bench."""
