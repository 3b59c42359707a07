"""Pages in a real browser, which reaches this machine only."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from testbed.needs import need

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Visit(NamedTuple):
    """A page as its scripts left it, and the lines of the browser's console."""

    dom: str
    console: str


def visit(url: str, profile: Path, *options: str) -> Visit:
    """Return the page at a URL after it was loaded; `profile` is a folder for the browser. Whatever is asked of other
    hosts fails, and the console says so."""
    need("chromium")
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
    done = subprocess.run([browser, *always, *options, url], capture_output=True, text=True, timeout=50)
    assert "</html>" in done.stdout, done.stderr
    return Visit(done.stdout, "\n".join(line for line in done.stderr.splitlines() if ":CONSOLE:" in line))
