"""Pages in a real browser, which reaches this machine only."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from testbed.needs import need

NAMES = ("chromium", "chromium-browser", "google-chrome")
TRIES = 3
"""On a busy machine Chromium ends at times without having written a page, where it leads on to another one."""


class Visit(NamedTuple):
    """A page as its scripts left it, and the lines of the browser's console."""

    dom: str
    console: str


def visit(url: str, profile: Path, *options: str) -> Visit:
    """Return the page at a URL after it was loaded; `profile` begins the name of the browser's folder. Whatever is
    asked of other hosts fails, and the console says so."""
    need("chromium")
    for number in range(TRIES):
        done = _run(url, profile.with_name(f"{profile.name}-{number}"), *options)
        if "</html>" in done.stdout:
            return Visit(
                done.stdout, "\n".join(line for line in done.stderr.splitlines() if ":CONSOLE:" in line)
            )
    raise AssertionError(f"no page of {url}; Chromium ended with {done.returncode}: {done.stderr}")


def _run(url: str, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    browser = next(filter(None, map(shutil.which, NAMES)))
    always = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
        "--proxy-server=127.0.0.1:9",
        f"--user-data-dir={profile}",
        "--dump-dom",
    ]
    return subprocess.run([browser, *always, *options, url], capture_output=True, text=True, timeout=50)
