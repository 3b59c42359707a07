"""`mqns backup` and `mqns restore`: KV, shared settings and drains of a redis-namesrv in one file, by its HTTP API.

`state` reads what a server has, `file` what a file has; `differences` compares them, `restoring` makes them equal."""
