"""Markdown helpers: tables, code and pages."""

from collections.abc import Iterable, Sequence

MADE = "<!-- Generated from the code by `make reference`. Do not edit. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table; characters that would end a cell are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def code(text: str) -> str:
    """Format text as code; empty text stays empty."""
    return f"`{text}`" if text else ""


def page(title: str, intro: str, *parts: str) -> str:
    """Format a whole page."""
    return "\n\n".join((f"# {title}", MADE, intro.strip(), *parts)) + "\n"


def yes(fact: bool) -> str:
    """Format a boolean for a table."""
    return "yes" if fact else "no"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
