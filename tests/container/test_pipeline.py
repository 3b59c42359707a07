"""The pipeline's image: Spark and Java do their work with a read-only root."""

import pytest

from tests.container.podman import PIPELINE, once

WITHIN_S = 1500.0
WAREHOUSE = "/tmp/warehouse"
RUN = f"mqpipeline sample --brokers 3 --topics 5 --weeks 1 && mqpipeline run && ls {WAREHOUSE}"


@pytest.mark.timeout(1600)
def test_a_history_becomes_reports(redis_url: str) -> None:
    env = {
        "REDIS_URL": redis_url,
        "MQNS_PIPELINE_NAMESPACES": "sample",
        "MQNS_PIPELINE_WAREHOUSE": WAREHOUSE,
        "MQNS_PIPELINE_MEMORY": "1g",
    }
    ended = once(PIPELINE, "sh", "-c", RUN, timeout_s=WITHIN_S, **env)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert {"events", "runs", "report_health", "report-sample.html"} <= set(ended.stdout.split())
