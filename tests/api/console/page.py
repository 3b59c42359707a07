"""A browser without scripts, for pages of the console: what a page says, where it leads, and the forms that it has."""

from collections.abc import Mapping
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.console.session import CSRF
from tests.api.http import Http

HOST = "http://localhost"
INLINE = ("a", "code", "span", "strong", "time", "b")


class Form(NamedTuple):
    """Where it is sent, what it sends if nothing is typed, and its buttons as `name=value` by their words."""

    address: str
    fields: list[tuple[str, str]]
    buttons: dict[str, tuple[str, str] | None]


class Page(HTMLParser):
    """A page that was loaded; `text` are its words, `content` those of its main part, `links` paths by their words, and
    `targets` of all links; `values` those of fields by id, `tags` and `classes` all that there are."""

    def __init__(self, address: str, status: int, html: str, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.address, self.status, self.html, self.headers = address, status, html, headers
        self.forms: list[Form] = []
        self.ids: list[str] = []
        self.links: dict[str, str] = {}
        self.targets: list[str] = []
        self.values: dict[str, str] = {}
        self.tags: list[str] = []
        self.classes: list[str] = []
        self.content = ""
        self._main = 0
        self._words: list[str] = []
        self._link: tuple[str, int] | None = None
        self._button: tuple[tuple[str, str] | None, int] | None = None
        self._select = ""
        self._option: tuple[str | None, bool, int] | None = None
        self.feed(html)
        self.text = self._said(0)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        given = {name: value or "" for name, value in attrs}
        self._words += [] if tag in INLINE else [" "]
        self.ids += [given["id"]] if "id" in given else []
        self.tags.append(tag)
        self.classes += given.get("class", "").split()
        match tag:
            case "main":
                self._main = len(self._words)
            case "a":
                target = urljoin(HOST + self.address, given["href"])
                self._link = (target, len(self._words))
                self.targets.append(target.removeprefix(HOST))
            case "form":
                address = urljoin(HOST + self.address, given.get("action") or self.address)
                self.forms.append(Form(address.removeprefix(HOST), [], {}))
            case "input" if self.forms and "name" in given:
                self.forms[-1].fields.append((given["name"], given.get("value", "")))
                self.values |= {given["id"]: given.get("value", "")} if "id" in given else {}
            case "select":
                self._select = given["name"]
            case "option" if self._select:
                self.values |= {"selected": given.get("value", "")} if "selected" in given else {}
                self._option = (given.get("value"), "selected" in given, len(self._words))
            case "button":
                sent = (given["name"], given["value"]) if "name" in given else None
                self._button = (sent, len(self._words))

    def handle_endtag(self, tag: str) -> None:
        """Called for each end of a tag."""
        if tag == "a" and self._link:
            self.links.setdefault(self._said(self._link[1]), self._link[0].removeprefix(HOST))
        if tag == "button" and self._button and self.forms:
            self.forms[-1].buttons[self._said(self._button[1])] = self._button[0]
        if tag == "option" and self._option:
            self._offer(*self._option)
            self._option = None
        if tag == "select":
            self._select = ""
        if tag == "main":
            self.content = self._said(self._main)
        self._words += [] if tag in INLINE else [" "]

    def handle_data(self, data: str) -> None:
        """Called for each text."""
        self._words.append(data)

    @property
    def proof(self) -> str:
        """The proof that a form of the page bears, "" without a form."""
        return next((value for form in self.forms for name, value in form.fields if name == CSRF), "")

    def link(self, words: str) -> str:
        """Return the path of the first link that begins with these words."""
        return next(path for said, path in self.links.items() if said.startswith(words))

    def form(self, button: str) -> Form:
        """Return the form that has this button."""
        return next(form for form in self.forms if button in form.buttons)

    def _offer(self, value: str | None, selected: bool, since: int) -> None:
        """Have a form send the first of several options, or the one that is selected."""
        fields = self.forms[-1].fields
        if selected or all(name != self._select for name, _ in fields):
            fields[:] = [field for field in fields if field[0] != self._select]
            fields.append((self._select, self._said(since) if value is None else value))

    def _said(self, since: int) -> str:
        return " ".join("".join(self._words[since:]).split())


def page(client: FlaskClient, path: str, **options: str) -> Page:
    """Return the page at a path, whatever its status."""
    return _page(path, client.get(path, **options))


def load(http: Http, path: str, **headers: str) -> Page:
    """Return the page at a path, which is well formed."""
    loaded = _page(path, http.client.get(path, headers=headers))
    assert_well_formed(loaded)
    return loaded


def assert_well_formed(shown: Page) -> None:
    """Ids are there once, and there is one heading of the page; nothing that its policy forbids is in it."""
    assert len(shown.ids) == len(set(shown.ids)), shown.ids
    assert shown.tags.count("h1") == 1
    assert " style=" not in shown.html
    assert shown.tags.count("script") == 2  # htmx and live.js, both by address


def press(http: Http, page: Page, button: str, **typed: str) -> Page:
    """Send the form that has a button, with what was typed, and return the page that follows."""
    form = page.form(button)
    assert typed.keys() <= {name for name, _ in form.fields}, form
    fields = [(name, typed.get(name, value)) for name, value in form.fields]
    sent = form.buttons[button]
    data: dict[str, list[str]] = {}
    for name, value in [*fields, *([sent] if sent else [])]:
        data.setdefault(name, []).append(value)
    reply = http.client.post(form.address, data=data)
    if reply.status_code == 303:
        return load(http, urljoin(HOST + form.address, reply.headers["Location"]).removeprefix(HOST))
    return _page(form.address, reply)


class Browser:
    """Keeps cookies, as a browser does, and sends forms as they come."""

    def __init__(self, app: Flask) -> None:
        self.client = app.test_client()

    def get(self, path: str, **headers: str) -> Page:
        return _page(path, self.client.get(path, headers=_spelt(headers)))

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Page:
        return _page(path, self.client.post(path, data=fields, headers=_spelt(headers)))

    def send(self, page: str, fields: Mapping[str, str], path: str = "") -> Page:
        """Send a form of a page, with the proof that the page has."""
        return self.post(path or page, {**fields, CSRF: self.get(page).proof})

    def confirm(self, page: str, fields: Mapping[str, str], path: str = "") -> Page:
        """Send a form of a page, and confirm what it would do."""
        asked = self.send(page, fields, path)
        assert asked.status == 200, asked.text
        assert 'name="confirmed"' in asked.html, asked.text
        return self.post(path or page, {**fields, CSRF: asked.proof, "confirmed": "1"})

    def log_in(self, token: str) -> Page:
        return self.send("/console/login", {"token": token})


def _spelt(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _page(path: str, reply: TestResponse) -> Page:
    assert reply.mimetype == "text/html", reply
    return Page(path, reply.status_code, reply.text, dict(reply.headers))
