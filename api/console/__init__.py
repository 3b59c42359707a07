"""Pages for operators at `/console`: a client of the HTTP API in the same process, drawn with Jinja and htmx."""
