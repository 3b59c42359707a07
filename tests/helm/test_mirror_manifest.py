"""The manifest of `mqns mirror` in docs/kubernetes.md, which stands beside the chart."""

import re

import pytest
import yaml

from mqns.cli.settings import TOKEN
from tests.helm.chart import ROOT, Object, container, environment, find, render, templates
from tests.helm.test_schemas import VERSIONS, problem
from tests.helm.test_security import breaches

PAGE = (ROOT / "docs" / "kubernetes.md").read_text()


def of_the_page() -> Object:
    """Return the manifest."""
    (text,) = re.findall(r"```yaml\n(# mirror\.yaml\n.*?)```", PAGE, re.S)
    loaded: Object = yaml.safe_load(text)
    return loaded


@pytest.fixture(scope="module")
def manifest() -> Object:
    return of_the_page()


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_valid(manifest: Object, version: str) -> None:
    assert problem(manifest, version) is None


def test_its_pod_is_restricted_and_alone(manifest: Object) -> None:
    ((_, pod),) = templates([manifest])
    assert breaches(pod) == []
    assert (manifest["spec"]["replicas"], manifest["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert pod["metadata"]["labels"].items() >= manifest["spec"]["selector"]["matchLabels"].items()


def test_it_asks_the_http_side_of_the_chart_with_a_token_of_a_secret(manifest: Object) -> None:
    service = find(render(), "Service", "mq-http")
    url = f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    *words, last = container(manifest)["command"]
    assert (words[:2], last) == (["mqns", "mirror"], f"--http={url}")
    assert environment(manifest) == {TOKEN: {"secretKeyRef": {"name": "mirror-token", "key": "token"}}}
    assert "create secret generic mirror-token --from-file=token=mirror.token" in PAGE


def test_its_image_is_of_this_version(manifest: Object) -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version
    assert container(manifest)["image"] == f"registry.example/redis-namesrv:{version[1]}"
