"""What a running server counts, as a scrape of its /metrics has it."""

from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from metrics.metric import PREFIX

__all__ = ["value"]


def value(http_port: int, name: str, **labels: str) -> float:
    """Return the sum of the series of `name`, without its prefix, that have these labels; 0 where there is none.

    Workers publish once a second."""
    with urlopen(f"http://127.0.0.1:{http_port}/metrics", timeout=5) as reply:
        text = reply.read().decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == PREFIX + name and labels.items() <= sample.labels.items()
    )
