r"""Wildcard patterns: `*` is any run of characters; `\*` and `\\` are literal."""

import msgspec

from storage.domain import limits
from storage.domain.filters.reasons import PatternInvalid

_TOO_COMPLEX = (
    "Rule is too complex - try using fewer wildcard characters or fewer repeating character "
    "sequences after a wildcard character"
)


class Wildcard(msgspec.Struct, frozen=True):
    """Literal texts with a star between each two; a single one matches itself alone."""

    texts: tuple[str, ...]

    def matches(self, value: str) -> bool:
        """Match from left to right, each text at its first occurrence: no backtracking is needed."""
        first, *middle = self.texts
        if not middle:
            return value == first
        last = middle.pop()
        end = len(value) - len(last)
        start = len(first)
        if end < start or not (value.startswith(first) and value.endswith(last)):
            return False
        for text in middle:
            index = value.find(text, start, end)
            if index < 0:
                return False
            start = index + len(text)
        return True


def parse_wildcard(pattern: str) -> Wildcard:
    """Parse a pattern. Raises PatternInvalid, with positions in UTF-8 bytes from 1."""
    texts = [""]
    characters = enumerate(pattern)
    for position, character in characters:
        following = pattern[position + 1 : position + 2]
        if character == "*":
            if following == "*":
                raise PatternInvalid(
                    f"Consecutive wildcard characters at pos {_byte_position(pattern, position)}"
                )
            texts.append("")
        elif character == "\\":
            if following not in ("*", "\\"):
                raise PatternInvalid(
                    f"Invalid escape character at pos {_byte_position(pattern, position)}"
                )
            texts[-1] += following
            next(characters)
        else:
            texts[-1] += character
    if len(texts) - 1 > limits.FILTER_STARS_MAX:
        raise PatternInvalid(_TOO_COMPLEX)
    return Wildcard(tuple(texts))


def _byte_position(pattern: str, position: int) -> int:
    return len(pattern[:position].encode(errors="replace")) + 1
