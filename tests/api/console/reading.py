"""What a page of the console says and where it leads, read as a browser reads it."""

from html.parser import HTMLParser
from urllib.parse import urljoin

from flask.testing import FlaskClient

TAGS_WITHOUT_END = frozenset({"meta", "link", "img", "input", "br"})


BLOCKS = frozenset({"td", "th", "dt", "dd", "li", "p", "h1", "h2", "pre", "section", "article", "summary"})
"""Text in one is no part of the word before."""


class Page(HTMLParser):
    """A page: `text` of its content, without tags, `links` text -> address, `values` of fields by id, and the classes
    and ids of all that there is."""

    def __init__(self, path: str, status: int, html: str) -> None:
        super().__init__()
        self.path, self.status, self.html = path, status, html
        self.texts: list[str] = []
        self.links: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.ids: list[str] = []
        self.classes: list[str] = []
        self.tags: list[str] = []
        self._link = ""
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in TAGS_WITHOUT_END:
            self._open.append(tag)
        self.tags.append(tag)
        self.classes += given.get("class", "").split()
        if "id" in given:
            self.ids.append(given["id"])
            if tag == "input":
                self.values[given["id"]] = given.get("value", "")
        if tag == "option" and "selected" in given:
            self.values["selected"] = given.get("value", "")
        if tag in BLOCKS:
            self.texts.append(" ")
        if tag == "a":
            self._link = given.get("href", "")

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()
        if tag in BLOCKS:
            self.texts.append(" ")
        if tag == "a":
            self._link = ""

    def handle_data(self, data: str) -> None:
        if "main" in self._open:
            self.texts.append(data)
        if self._link and data.strip():
            self.links.setdefault(data.strip(), urljoin(self.path, self._link))

    @property
    def text(self) -> str:
        """All of it, with single blanks."""
        return " ".join("".join(self.texts).split())


def page(client: FlaskClient, path: str, **options: str) -> Page:
    """Return a page, whatever its status."""
    reply = client.get(path, **options)
    assert reply.mimetype == "text/html", reply.data
    return Page(path, reply.status_code, reply.get_data(as_text=True))


def assert_well_formed(shown: Page) -> None:
    """Ids are there once, and there is one heading of the page; nothing that its policy forbids is in it."""
    assert len(shown.ids) == len(set(shown.ids))
    assert shown.tags.count("h1") == 1
    assert " style=" not in shown.html
    assert shown.tags.count("script") == 2  # htmx and live.js, both by address
