"""Queue data of topics: as it is stored, in slices that one script can carry, and rewritten."""
