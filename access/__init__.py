"""Who may ask what, on the wire and over HTTP: classes of requests, rules, principals (docs/access.md)."""
