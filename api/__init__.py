"""The HTTP API of the registry: JSON over HTTP (docs/http-api.md)."""
