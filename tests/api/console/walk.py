"""A browser without scripts, for pages of the console: what a page says, where it leads, and the forms that it has."""

from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin

from tests.api.http import Http

HOST = "http://localhost"
INLINE = ("a", "code", "span", "strong", "time", "b")


class Form(NamedTuple):
    """Where it is sent, what it sends if nothing is typed, and its buttons as `name=value` by their words."""

    address: str
    fields: list[tuple[str, str]]
    buttons: dict[str, tuple[str, str] | None]


class Page(HTMLParser):
    """A page that was loaded; `text` are its words, `links` paths by their words."""

    def __init__(self, address: str, status: int, html: str) -> None:
        super().__init__()
        self.address, self.status, self.html = address, status, html
        self.forms: list[Form] = []
        self.ids: list[str] = []
        self.links: dict[str, str] = {}
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
        match tag:
            case "a":
                self._link = (urljoin(HOST + self.address, given["href"]), len(self._words))
            case "form":
                address = urljoin(HOST + self.address, given.get("action") or self.address)
                self.forms.append(Form(address.removeprefix(HOST), [], {}))
            case "input" if self.forms and "name" in given:
                self.forms[-1].fields.append((given["name"], given.get("value", "")))
            case "select":
                self._select = given["name"]
            case "option" if self._select:
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

    def handle_data(self, data: str) -> None:
        """Called for each text."""
        self._words.append(data)

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


def load(http: Http, path: str, **headers: str) -> Page:
    """Return the page at a path; it names no other host, and no id twice."""
    reply = http.client.get(path, headers=headers)
    assert reply.mimetype == "text/html", reply
    page = Page(path, reply.status_code, reply.text)
    assert len(page.ids) == len(set(page.ids)), page.ids
    assert " style=" not in page.html
    return page


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
    return Page(form.address, reply.status_code, reply.text)
