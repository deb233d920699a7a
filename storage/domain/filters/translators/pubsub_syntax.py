"""Syntax of Pub/Sub filters, parsed with negations pushed down to the tests of attributes."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from storage.domain import limits
from storage.domain.filters.translation import TranslationRefused

_TOKEN = re.compile(
    r"""\s*(?: (?P<text>"(?:[^"\\]|\\.)*") | (?P<word>[A-Za-z0-9_][A-Za-z0-9_-]*) | (?P<sign>!=|[=:.,()-]) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{3})|(.))", re.DOTALL
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"} | {
    character: character for character in "\\'\"?`"
}


class PubSubTerm(NamedTuple):
    """Test of one attribute, or its negation."""

    attribute: str
    operator: str  # exists, equals, prefix
    value: str = ""
    is_negated: bool = False


class Connective(NamedTuple):
    """Conjunction or disjunction."""

    connector: str  # AND, OR
    parts: "tuple[Node, ...]"


Node = PubSubTerm | Connective


def parse(text: str) -> Node:
    """Parse a filter.

    Raises TranslationRefused.
    """
    if len(text) > limits.WHERE_CHARACTERS_MAX:
        raise TranslationRefused(f"A filter has at most {limits.WHERE_CHARACTERS_MAX} characters.")
    return _Parser(text).parse()


class _Parser:
    """Recursive descent over the tokens of a filter."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), ("end", "")]
        self._position = 0

    def parse(self) -> Node:
        node = self._expression(0, is_negated=False)
        if self._kind != "end":
            self._refuse()
        return node

    @property
    def _kind(self) -> str:
        return self._tokens[self._position][0]

    @property
    def _text(self) -> str:
        return self._tokens[self._position][1]

    def _refuse(self) -> NoReturn:
        if self._kind == "end":
            raise TranslationRefused("The filter is not complete.")
        raise TranslationRefused(f"'{self._text}' is not expected here.")

    def _next(self) -> str:
        text = self._text
        self._position += 1
        return text

    def _accept(self, *texts: str) -> bool:
        is_present = self._kind in {"word", "sign"} and self._text in texts
        self._position += is_present
        return is_present

    def _expect(self, *texts: str) -> None:
        if not self._accept(*texts):
            self._refuse()

    def _expression(self, depth: int, *, is_negated: bool) -> Node:
        """Parse terms between connectors, and push a negation down to them (De Morgan)."""
        parts = [self._term(depth, is_negated=is_negated)]
        connector = self._text
        while self._accept("AND", "OR"):
            if self._tokens[self._position - 1][1] != connector:
                raise TranslationRefused("Put parentheses between AND and OR.")
            parts.append(self._term(depth, is_negated=is_negated))
        if len(parts) == 1:
            return parts[0]
        opposite = {"AND": "OR", "OR": "AND"}[connector]
        return _group(opposite if is_negated else connector, parts)

    def _term(self, depth: int, *, is_negated: bool) -> Node:
        if depth > limits.PUBSUB_NESTING_MAX:
            detail = f"A filter has at most {limits.PUBSUB_NESTING_MAX} levels of parentheses."
            raise TranslationRefused(detail)
        if self._accept("NOT", "-"):
            return self._term(depth + 1, is_negated=not is_negated)
        if self._accept("("):
            node = self._expression(depth + 1, is_negated=is_negated)
            self._expect(")")
            return node
        if self._accept("hasPrefix"):
            return self._prefix(is_negated=is_negated)
        return self._comparison(is_negated=is_negated)

    def _prefix(self, *, is_negated: bool) -> PubSubTerm:
        self._expect("(")
        self._expect("attributes")
        self._expect(".")
        attribute = self._attribute()
        self._expect(",")
        value = self._value()
        self._expect(")")
        if not value:  # every value begins with it
            return PubSubTerm(attribute, "exists", "", is_negated)
        return PubSubTerm(attribute, "prefix", value, is_negated)

    def _comparison(self, *, is_negated: bool) -> PubSubTerm:
        self._expect("attributes")
        if self._accept(":"):
            return PubSubTerm(self._attribute(), "exists", "", is_negated)
        self._expect(".")
        attribute = self._attribute()
        sign = self._text
        self._expect("=", "!=")
        return PubSubTerm(attribute, "equals", self._value(), is_negated is not (sign == "!="))

    def _attribute(self) -> str:
        name = _unquoted(self._next()) if self._kind == "text" else self._bare_name()
        if name == "$or":
            raise TranslationRefused("A header named '$or' cannot be matched.")
        return name

    def _bare_name(self) -> str:
        if self._kind != "word":
            self._refuse()
        return self._next()

    def _value(self) -> str:
        if self._kind != "text":
            raise TranslationRefused("A value is a text in double quotes.")
        return _unquoted(self._next())


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position, text = 0, text.rstrip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            character = text[position:].lstrip()[0]
            detail = f"'{character}' is not expected here."
            raise TranslationRefused(
                "A quotation mark is not closed." if character == '"' else detail
            )
        yield str(token.lastgroup), token[token.lastgroup or 0]
        position = token.end()


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(_character, text[1:-1])


def _character(escape: re.Match[str]) -> str:
    hexadecimal = escape[1] or escape[2] or escape[3]
    code = int(hexadecimal, 16) if hexadecimal else int(escape[4], 8) if escape[4] else None
    character = _ESCAPED.get(escape[5] or "") if code is None else _chr(code)
    if character is None:
        raise TranslationRefused(f"'{escape[0]}' is not an escape sequence.")
    return character


def _chr(code: int) -> str | None:
    is_character = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character else None


def _group(connector: str, parts: Sequence[Node]) -> Connective:
    """Return a group whose parts of the same connector are its own."""
    flat: list[Node] = []
    for part in parts:
        is_same = isinstance(part, Connective) and part.connector == connector
        flat += part.parts if isinstance(part, Connective) and is_same else [part]
    return Connective(connector, tuple(flat))
