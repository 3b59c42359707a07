"""The options of the name server: what there is, and where values come from."""
