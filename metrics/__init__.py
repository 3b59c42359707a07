"""What operators measure: the metrics' names, labels and values, as Prometheus reads them (docs/metrics.md)."""
