"""The rows of the fault table, by what is broken."""
