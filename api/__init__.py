"""The HTTP side: what the registry knows, as JSON over HTTP (docs/http-api.md)."""
