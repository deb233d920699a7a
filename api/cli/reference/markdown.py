"""Tables and words as Markdown has them."""

from collections.abc import Iterable, Sequence

MADE = (
    "<!-- Made of the code by `make reference`: what is written here is lost with the next one. -->"
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; what would end a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def code(word: str) -> str:
    """A word as code; nothing where there is none."""
    return f"`{word}`" if word else ""


def page(title: str, intro: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join((f"# {title}", MADE, intro.strip(), *parts)) + "\n"


def yes(fact: bool) -> str:
    """How facts stand in tables."""
    return "yes" if fact else "no"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
