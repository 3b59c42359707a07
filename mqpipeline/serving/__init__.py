"""What people and programs read of a run: the reports in Redis, and the page."""
