"""Refusal of a query, with the place in its text and the alternative."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Position:
    """A place in a query's text; both numbers start at 1."""

    line: int
    column: int


START = Position(1, 1)


class SqlRefused(Exception):
    """The query contains what users' SQL may not use, or does not parse."""

    def __init__(self, problem: str, instead: str, position: Position = START) -> None:
        super().__init__(f"Line {position.line}, column {position.column}: {problem}. {instead}")
        self.problem = problem
        self.instead = instead
        self.position = position


class NodeRefused(Exception):
    """A check refuses a node; the fence adds the place in the text."""

    def __init__(self, refused: str, instead: str) -> None:
        super().__init__(refused)
        self.refused = refused
        self.instead = instead


def first_line(message: str) -> str:
    """Return the first line of Spark's message, without its class, state and place."""
    line = message.strip().partition("\n")[0]
    line = re.sub(r"^\[[A-Z_.0-9]+\] ", "", line)
    return re.sub(r" SQLSTATE: \w+.*$", "", line).rstrip(".")
