"""Reading a page as a person does: its text, its links, its tags."""

from html.parser import HTMLParser

from django.http import HttpResponse

INLINE = frozenset(
    ["a", "b", "bdi", "code", "em", "path", "circle", "rect", "span", "strong", "svg", "time"]
)


class Page(HTMLParser):
    """`text` has single spaces; hidden labels for screen readers are part of it."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(convert_charrefs=True)
        self.status = response.status_code
        self.html = response.content.decode()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.parts: list[str] = []
        self.open_raw: str | None = None
        self.raw: list[tuple[str, str]] = []
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in INLINE or "sub" in dict(attrs).values():
            self.parts.append(" ")
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.open_raw = tag if tag in ("script", "style", "title") else None

    def handle_endtag(self, tag: str) -> None:
        self.open_raw = None
        if tag not in INLINE:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if self.open_raw:
            self.raw.append((self.open_raw, data))
        else:
            self.parts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())

    @property
    def title(self) -> str:
        return next(data for tag, data in self.raw if tag == "title").strip()

    def attributes(self, name: str) -> list[str]:
        """Every value of an attribute, over all tags."""
        return [attrs[name] for _, attrs in self.tags if name in attrs]

    def links(self) -> list[str]:
        return [attrs["href"] for tag, attrs in self.tags if tag == "a" and "href" in attrs]
