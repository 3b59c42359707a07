"""What gunicorn loads, under either worker: HTTP is built by its first request only."""

from api.entry import app as app
