"""This server and Java's side by side: loads, rows and their figures (bench/run.py)."""
