"""`python container/pip_conf.py FOLDER`: the settings of pip on this machine, as files that a build takes as secrets.

Writes FOLDER/pip.conf, and FOLDER/ca.crt with the certificates that it names."""

import configparser
import subprocess
import sys
from pathlib import Path

CARRIED = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries")
HEADER = "pip's settings on the machine that built this"
"""In each pip.conf that is handed to a build; no image is to have it."""
CERTIFICATES_IN_BUILD = "/run/secrets/ca.crt"


def configured() -> dict[str, str]:
    """Option -> value, of files and environment; what a later line says counts, as with pip."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    ).stdout
    entries = (line.partition("=") for line in listing.splitlines())
    return {key.rpartition(".")[2]: value.strip("'\"") for key, _, value in entries}


def main(folder: Path) -> None:
    """See the module."""
    here = configured()
    wanted = {key: here[key] for key in CARRIED if key in here}
    certificates = Path(here["cert"]).read_bytes() if "cert" in here else b""
    if certificates:
        wanted["cert"] = CERTIFICATES_IN_BUILD
    (folder / "ca.crt").write_bytes(certificates)
    conf = configparser.RawConfigParser()
    conf["global"] = wanted
    with (folder / "pip.conf").open("w") as file:
        file.write(f"# {HEADER}\n")
        conf.write(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
