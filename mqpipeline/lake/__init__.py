"""Tables as Delta Lake keeps them: files that never change, and a log that says which of them are the table."""
