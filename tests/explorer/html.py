"""Read a page as a browser does: elements, attributes and text."""

from __future__ import annotations

from html.parser import HTMLParser

from flask.testing import FlaskClient

VOID = {"meta", "link", "input", "img", "br"}
# Elements inside of a line; a browser separates the text of all others.
INLINE = {"a", "code", "span", "small", "strong", "time"}


class Html(HTMLParser):
    """The elements of a page, in order, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self._texts: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise AssertionError(f"<{tag}/>")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, tag
        if tag not in INLINE:
            self._texts.append(" ")

    def handle_data(self, data: str) -> None:
        self._texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    @property
    def text(self) -> str:
        """All text, with its white space as single spaces."""
        return " ".join("".join(self._texts).split())

    @property
    def whole_text(self) -> str:
        """All text, with its white space."""
        return "".join(self._texts)

    @property
    def links(self) -> list[str]:
        """The addresses of links, in order."""
        return [attributes["href"] for tag, attributes in self.elements if tag == "a"]

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """The elements with the names of their attributes."""
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]


def page(client: FlaskClient, path: str, status: int = 200) -> Html:
    """Return a page of the explorer, and check its status."""
    response = client.get(f"/explorer{path}")
    assert response.status_code == status, response.text
    return Html(response.text)
