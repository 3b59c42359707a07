"""Amazon's S3 as moto speaks it, on this machine."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from testbed.eventually import eventually
from testbed.needs import need
from testbed.ports import free_port

MOTO: Final = Path(__file__).parents[1] / "build" / "moto" / "bin" / "moto_server"
BUCKET: Final = "lake"
KEY: Final = "any"


class S3(NamedTuple):
    """Where it listens, and the variables by which delta-rs's object store finds it and the bucket BUCKET."""

    endpoint: str
    environment: Mapping[str, str]


@contextmanager
def s3(folder: Path) -> Iterator[S3]:
    """Start one with an empty bucket; what it prints is in the folder."""
    need("moto")
    endpoint = f"http://127.0.0.1:{free_port()}"
    command = [str(MOTO), "-H", "127.0.0.1", "-p", endpoint.rpartition(":")[2]]
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": KEY,
    }
    with (
        (folder / "moto.txt").open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as moto,
    ):
        try:
            eventually(lambda: _created(f"{endpoint}/{BUCKET}"))
            yield S3(endpoint, environment)
        finally:
            moto.kill()


def _created(url: str) -> bool:
    try:
        return httpx.put(url).is_success
    except httpx.TransportError:
        return False
