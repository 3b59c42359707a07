"""A virtual environment that holds wheels and what they require, nothing else; filled without a network."""

import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from zipfile import Path as ZipPath
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def described(wheel: Path) -> Distribution:
    """Return the metadata of a wheel file."""
    (folder,) = (path for path in ZipPath(ZipFile(wheel)).iterdir() if path.name.endswith(".dist-info"))
    return PathDistribution(folder)


def required(by: Distribution, *extras: str) -> dict[str, Distribution]:
    """Return what `by` with these extras requires, directly or not, by name: the distributions installed here."""
    distributions: dict[str, Distribution] = {}
    visited: set[str] = set()
    pending = list(_requirements(by, extras))
    while pending:
        requirement = pending.pop()
        if str(requirement) not in visited:
            visited.add(str(requirement))
            name = canonicalize_name(requirement.name)
            distributions[name] = distribution(name)
            pending += _requirements(distributions[name], requirement.extras)
    return distributions


def _requirements(by: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    for line in by.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def environment(folder: Path, *wheels: Path, extras: Iterable[str] = ()) -> Path:
    """Make a virtual environment of these wheels, and of links to what they require with these extras -> its `bin`."""
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    ours = {canonicalize_name(described(wheel).name) for wheel in wheels}
    packages = {name: one for wheel in wheels for name, one in required(described(wheel), *extras).items()}
    for package in (one for name, one in packages.items() if name not in ours):
        for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            (site_packages / name).symlink_to(str(package.locate_file(name)))
    into = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*into, "install", "-q", "--no-deps", "--no-index", *wheels], check=True)
    return folder / "bin"
