"""The streams' entries as rows of typed columns, each kept once, in files by day."""
