"""Parsing of the documentation: pages, code blocks, links and headings.

A block is run by a test, or parsed, or states why not in a comment directly above it:

    <!-- not run: it needs a Kubernetes -->
    ```sh
    helm install …
    ```
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLE_URL = "http://127.0.0.1:8080"

_FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NAMED = re.compile(r"(?:#|//) (?P<name>[\w.-]+\.(?:py|mjs|sh))\n")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_CREATED = [
    re.compile(
        r"curl [^\n|]*-X PUT \S+/v1/(queues|streams|groups|webhooks)/([\w.-]+)(?=['\" \n]|$)"
    ),
    re.compile(r"\bmillstream (queue|stream|group|webhook) create ([a-z][\w.-]*)"),
    re.compile(r"\bclient\.(queue|stream|group)\([\"']([\w.-]+)[\"']\)"),
    re.compile(r"\bput(Queue|Stream|ConsumerGroup)\(\{[^}]*path: \{ \w+: '([\w.-]+)'"),
    re.compile(r"\bcreate_(queue|stream)\(\s*(?:QueueName|StreamName)=\"([\w.-]+)\""),
    re.compile(r"\bcreate-(queue|stream) --(?:queue|stream)-name ([\w.-]+)"),
]
_KINDS = {"queue": "log", "stream": "log", "consumergroup": "group"}
_LINK = re.compile(r"\]\(([^()\s]+)\)")


class Block(NamedTuple):
    """A fenced block of a page; `why` is the reason for not running it, or empty."""

    line: int
    language: str
    text: str
    why: str

    @property
    def file_name(self) -> str:
        """The file name in its first line, or empty."""
        named = _NAMED.match(self.text)
        return named["name"] if named else ""


def pages() -> list[Path]:
    """All pages, including decision records."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def reading_order() -> list[Path]:
    """All pages in the order in which the index lists them, the README first."""
    index = DOCS / "README.md"
    listed = [ROOT / "README.md", *((DOCS / link.partition("#")[0]) for link in links(index))]
    return list(dict.fromkeys([*(page for page in listed if page.suffix == ".md"), *pages()]))


def created_names(page: Path) -> set[tuple[str, str]]:
    """The resources that the blocks of a page create: kind and name; queues and streams are one kind."""
    return {
        (_KINDS.get(kind.rstrip("s").lower(), kind.rstrip("s").lower()), name)
        for block in blocks(page)
        if not block.why
        for pattern in _CREATED
        for kind, name in pattern.findall(block.text)
    }


def name_of(page: Path) -> str:
    """The path of a page, for messages."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(
            text.count("\n", 0, found.start()) + 1,
            found["language"],
            found["text"],
            found["why"] or "",
        )
        for found in _FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    """A page without its blocks and inline code."""
    return re.sub(r"`[^`\n]*`", "``", _FENCE.sub("", page.read_text()))


def links(page: Path) -> Iterator[str]:
    """Targets of a page's links, except other sites."""
    for target in _LINK.findall(prose(page)):
        if not re.match(r"[a-z]+:", target):
            yield unquote(target)


def anchors(page: Path) -> set[str]:
    """Anchors of a page: headings as spelled by forges, numbered when repeated."""
    told: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text())):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        told.add(next(one for one in _counted(slug) if one not in told))
    return told


def _counted(slug: str) -> Iterator[str]:
    yield slug
    number = 0
    while True:
        number += 1
        yield f"{slug}-{number}"
