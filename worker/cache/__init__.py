"""What a worker caches: replies, under what asked for them, until a generation moves or a time passes."""
