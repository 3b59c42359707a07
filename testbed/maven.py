"""Jars of others, fetched once on a machine through Maven."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

FETCH_TIMEOUT_S: Final = 600
COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>peers</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY: Final = """\
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{name}</artifactId>
      <version>{version}</version>
    </dependency>"""


class Artifact(NamedTuple):
    """What Maven calls so; its version is exact."""

    group: str
    name: str
    version: str


def cache(name: str) -> Path:
    """Return the folder of this user for what tests fetch."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redis-namesrv" / name


def fetch(artifacts: Iterable[Artifact], folder: Path) -> Path:
    """Return `folder`/lib, with the jars of these and of what they need, fetched if it is not there. One process at a
    time."""
    libraries, partial = folder / "lib", folder / "lib.partial"
    if libraries.exists():
        return libraries
    dependencies = "\n".join(DEPENDENCY.format(**artifact._asdict()) for artifact in artifacts)
    (folder / "pom.xml").write_text(POM.format(dependencies=dependencies))
    subprocess.run(
        ["mvn", "-q", "-B", COPY, f"-DoutputDirectory={partial}", "-DincludeScope=runtime"],
        cwd=folder,
        check=True,
        timeout=FETCH_TIMEOUT_S,
    )
    return partial.rename(libraries)
