"""The wire: a gunicorn worker that speaks RocketMQ remoting, its handlers and jobs."""
