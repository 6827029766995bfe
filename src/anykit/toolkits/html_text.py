"""HTML as Markdown or text, in time that grows with its length however it is written.

Python's HTML parser needs minutes for some hundred kilobytes of `<a<a<a`. So a page is first read by the small tokenizer
here, which looks at every character once, and written anew: known elements only, every one closed, none too deep, scripts
and styles gone. What markdownify then parses is harmless.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urljoin, urlsplit

MAX_DEPTH = 40
"""Elements in elements; deeper ones are dropped, their text is kept."""
MAX_ELEMENTS = 30_000
"""Elements of a page that Markdown is made of; a page with more becomes text."""
MAX_LINK = 2000

_DROPPED = frozenset(
    {"script", "style", "template", "svg", "math", "iframe", "object", "canvas", "noscript", "audio", "video", "select"}
    | {"textarea", "head"}
)
"""Elements whose contents no reader sees."""
_RAW = frozenset({"script", "style", "textarea", "title", "iframe", "noscript"})
"""Elements whose contents are no markup."""
_VOID = frozenset(
    {"br", "hr", "img", "input", "meta", "link", "area", "base", "col", "embed", "source", "track", "wbr"}
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = frozenset(
    {
        "p",
        "div",
        "section",
        "article",
        "main",
        "header",
        "footer",
        "nav",
        "aside",
        "ul",
        "ol",
        "dl",
        "table",
        "pre",
        "form",
    }
    | {"blockquote", "figure", "figcaption", "address", "fieldset", "details", "summary", "hr", *_HEADINGS}
)
_PARTS = frozenset({"li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "caption"})
_INLINE = frozenset({"a", "b", "strong", "i", "em", "del", "s", "sub", "sup", "code", "kbd", "samp", "q"})
_KEPT = _BLOCKS | _PARTS | _INLINE
_ENDED_BY = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "thead": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
    "tbody": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
    "tfoot": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
}
"""What an element ends when it begins, and how far outwards that reaches: HTML leaves out many an end."""

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9:-]{0,40}")
_ATTRIBUTE = re.compile(r"[^\s=>/\"']+")
_SPACE = re.compile(r"[\s/]*")
_VALUE = re.compile(r"[^\s>]*")
_EQUALS = re.compile(r"\s*=\s*")


@dataclass(frozen=True, slots=True)
class Open:
    """A start tag."""

    name: str
    attributes: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Close:
    """An end tag."""

    name: str


Token: TypeAlias = Open | Close | str
"""A tag, or text with its character references resolved."""


def tokens(page: str) -> Iterator[Token]:
    """The tags and texts of a page. Each character is looked at once or twice, whatever is left open."""
    position = 0
    while position < len(page):
        start = page.find("<", position)
        if start < 0:
            start = len(page)
        if start > position:
            yield _unescaped(page[position:start])
            position = start
            continue
        if page.startswith("<!--", start):
            position = _after(page, "-->", start + 4)
        elif page.startswith(("<!", "<?"), start):
            position = _after(page, ">", start + 2)
        elif page.startswith("</", start):
            name = _NAME.match(page, start + 2)
            position = _after(page, ">", start + 2)
            if name:
                yield Close(name[0].lower())
        elif name := _NAME.match(page, start + 1):
            attributes, position = _attributes(page, name.end())
            tag = name[0].lower()
            yield Open(tag, attributes)
            if tag in _RAW:
                end = re.compile(f"</{tag}", re.IGNORECASE).search(page, position)
                stop = end.start() if end else len(page)
                if tag == "title":
                    yield _unescaped(page[position:stop])
                position = stop
        else:
            yield "<"
            position = start + 1


def _after(page: str, mark: str, start: int) -> int:
    """Behind the next `mark`; without one the rest of the page belongs to what was opened."""
    end = page.find(mark, start)
    return len(page) if end < 0 else end + len(mark)


def _attributes(page: str, position: int) -> tuple[dict[str, str], int]:
    """The attributes of a start tag that matter here, and where it ends."""
    attributes: dict[str, str] = {}
    while True:
        space = _SPACE.match(page, position)
        position = space.end() if space else position
        if position >= len(page):
            return attributes, position
        if page[position] == ">":
            return attributes, position + 1
        name = _ATTRIBUTE.match(page, position)
        if name is None:
            position += 1
            continue
        position = name.end()
        value = ""
        equals = _EQUALS.match(page, position)
        if equals:
            position = equals.end()
            quote = page[position : position + 1]
            if quote and quote in "\"'":
                end = page.find(quote, position + 1)
                if end < 0:
                    return attributes, len(page)
                value, position = page[position + 1 : end], end + 1
            elif (found := _VALUE.match(page, position)) is not None:
                value, position = found[0], found.end()
        key = name[0].lower()
        if key in ("href", "src", "alt") and key not in attributes:
            attributes[key] = _unescaped(value[: 2 * MAX_LINK])


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text)
    except ValueError:  # a number of thousands of digits
        return text


def title_of(page: str) -> str:
    """The page's title on one line."""
    inside = False
    for token in tokens(page[:65536]):
        if isinstance(token, str):
            if inside:
                return " ".join(token.split())[:500]
        else:
            inside = isinstance(token, Open) and token.name == "title"
    return ""


class _Writer:
    """Writes the page anew, well-formed."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.written: list[str] = []
        self.elements = 0
        self._open: list[str] = []
        self._items: list[int] = []
        """For each open element how many list items it has."""
        self._ignored: Counter[str] = Counter()
        """Too deep, so their ends end nothing."""

    def text(self, text: str) -> None:
        self.written.append(html.escape(text, quote=False))

    def start(self, tag: Open) -> None:
        name = tag.name
        if name == "br" or name == "hr":
            self.elements += 1
            self.written.append(f"<{name}/>")
        elif name == "img":
            self.elements += 1
            self._image(tag)
        elif name in _KEPT:
            self._close_implied(name)
            if len(self._open) >= MAX_DEPTH:
                self._ignored[name] += 1
                return
            if name == "li" and self._open and self._open[-1] == "ol":
                self._next_item()
            self.elements += 1
            self._open.append(name)
            self._items.append(0)
            link = self._link(tag.attributes.get("href", "")) if name == "a" else ""
            self.written.append(f'<a href="{html.escape(link)}">' if link else f"<{name}>")

    def end(self, name: str) -> None:
        if self._ignored[name]:
            self._ignored[name] -= 1
        elif name in self._open:
            while self._close() != name:
                pass

    def finished(self) -> str:
        while self._open:
            self._close()
        return "".join(self.written)

    def _close(self) -> str:
        name = self._open.pop()
        self._items.pop()
        self.written.append(f"</{name}>")
        return name

    def _next_item(self) -> None:
        """markdownify counts the items before each one: a long list goes on in another, with its number."""
        count = self._items[-1]
        if count and count % 100 == 0:
            self.written.append(f'</ol><ol start="{count + 1}">')
        self._items[-1] = count + 1

    def _close_implied(self, name: str) -> None:
        if name in _ENDED_BY:
            ended, within = _ENDED_BY[name]
        elif name in _BLOCKS:
            ended, within = frozenset({"p", *_HEADINGS}), _BLOCKS - _HEADINGS - {"p"} | _PARTS
        elif name == "a":
            ended, within = frozenset({"a"}), _BLOCKS | _PARTS
        else:
            return
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index] in ended:
                while len(self._open) > index:
                    self._close()
                return
            if self._open[index] in within:
                return

    def _image(self, tag: Open) -> None:
        source = self._link(tag.attributes.get("src", ""))
        described = " ".join(tag.attributes.get("alt", "").split())
        if source:
            self.written.append(f'<img src="{html.escape(source)}" alt="{html.escape(described)}"/>')
        elif described:
            self.text(described)

    def _link(self, target: str) -> str:
        """An absolute link that a reader may follow; empty for any other (`javascript:`, `data:`, none)."""
        try:
            link = urljoin(self.base, "".join(target.split()))
            scheme = urlsplit(link).scheme
        except ValueError:
            return ""
        return link if scheme in ("http", "https", "mailto") and len(link) <= MAX_LINK else ""


def _visible(page: str) -> Iterator[Token]:
    """The tokens that a reader sees."""
    dropped: str | None = None
    depth = 0
    for token in tokens(page):
        if dropped is not None:
            if isinstance(token, Open) and token.name == dropped:
                depth += 1
            elif isinstance(token, Close) and token.name == dropped:
                depth -= 1
                if depth == 0:
                    dropped = None
            elif dropped == "head" and isinstance(token, Open) and token.name in ("body", "main", "div", "p", "h1"):
                dropped = None  # the end of the head may be left out
                yield token
            continue
        if isinstance(token, Open) and token.name in _DROPPED:
            dropped, depth = token.name, 1
        elif not (isinstance(token, Open | Close) and token.name == "title"):
            yield token


def clean(page: str, base: str) -> tuple[str, int]:
    """The page written anew, links absolute; and how many elements it has."""
    writer = _Writer(base)
    for token in _visible(page):
        match token:
            case str():
                writer.text(token)
            case Open():
                writer.start(token)
            case Close():
                writer.end(token.name)
    return writer.finished(), writer.elements


def to_markdown(page: str, base: str) -> str:
    """The page as Markdown. Blocks, a second or two for a megabyte."""
    from markdownify import markdownify  # noqa: PLC0415 - 0.2 s that only this pays

    cleaned, elements = clean(page, base)
    if elements > MAX_ELEMENTS:
        return to_text(page)
    try:
        text = markdownify(cleaned, heading_style="ATX", bullets="-")
    except RecursionError:
        return to_text(page)
    title = title_of(page)
    if title and "<h1>" not in cleaned:
        text = f"# {title}\n\n{text}"
    return _tidy(text)


def to_text(page: str) -> str:
    """The page's text, a block a line, table cells apart by tabs."""
    lines: list[list[str]] = [[]]
    preformatted = 0
    for token in tokens(clean(page, "")[0]):
        if isinstance(token, str):
            if preformatted:
                first, *others = token.split("\n")
                lines[-1].append(first)
                lines += [[other] for other in others]
            else:
                text = re.sub(r"\s+", " ", token)
                if not lines[-1] or lines[-1][-1].endswith((" ", "\t")):
                    text = text.lstrip(" ")
                if text:
                    lines[-1].append(text)
            continue
        if token.name == "pre":
            preformatted += 1 if isinstance(token, Open) else -1
        if token.name in ("td", "th"):
            if isinstance(token, Close):
                lines[-1].append("\t")
        elif token.name in _BLOCKS or token.name in _PARTS or token.name == "br":
            if lines[-1]:
                lines.append([])
            if token.name in _HEADINGS or token.name == "p":
                lines.append([])
    return _tidy("\n".join("".join(line) for line in lines))


def _tidy(text: str) -> str:
    """No spaces at the ends of lines, no more than one empty line."""
    lines: list[str] = []
    for line in text.split("\n"):
        line = line.rstrip()
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).strip("\n") + "\n" if lines else ""
