"""Programs for developers: setup, lock files, generated pages and tables."""
