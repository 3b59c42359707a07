"""A browser without scripts: pages of the console, and their forms, in the test's own process."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any, NamedTuple

from flask import Flask

HERE = "http://localhost"
FORM_PROOF = re.compile('name="csrf" value="([0-9a-f]+)"')


class Page(NamedTuple):
    """An answer; `text` is what a reader sees of it, blanks as one."""

    status: int
    html: str
    headers: Mapping[str, str]

    @property
    def text(self) -> str:
        without = re.sub(r"<(script|style)\b.*?</\1>", " ", self.html, flags=re.DOTALL)
        return " ".join(unescape(re.sub("<[^>]*>", " ", without)).split())

    @property
    def links(self) -> list[str]:
        return [unescape(link) for link in re.findall(r'<a\b[^>]*\bhref="([^"]*)"', self.html)]

    @property
    def proof(self) -> str:
        found = FORM_PROOF.search(self.html)
        return found[1] if found else ""


class Browser:
    """Keeps cookies, as a browser does."""

    def __init__(self, app: Flask) -> None:
        self.client = app.test_client()

    def get(self, path: str, **headers: str) -> Page:
        return self._page(self.client.get(path, headers=_spelt(headers)))

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Page:
        return self._page(self.client.post(path, data=fields, headers=_spelt(headers)))

    def send(self, page: str, fields: Mapping[str, str], path: str = "") -> Page:
        """Send a form of a page, with the proof that the page has."""
        return self.post(path or page, {**fields, "csrf": self.get(page).proof})

    def confirm(self, page: str, fields: Mapping[str, str], path: str = "") -> Page:
        """Send a form of a page, and confirm what it would do."""
        asked = self.send(page, fields, path)
        assert asked.status == 200, asked.text
        assert 'name="confirmed"' in asked.html, asked.text
        return self.post(path or page, {**fields, "csrf": asked.proof, "confirmed": "1"})

    def log_in(self, token: str) -> Page:
        return self.send("/console/login", {"token": token})

    @staticmethod
    def _page(reply: Any) -> Page:
        return Page(reply.status_code, reply.text, reply.headers)


def _spelt(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
