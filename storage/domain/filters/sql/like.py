"""LIKE patterns, matched in time linear in the pattern's fixed parts.

A pattern is cut at its `%` into segments of fixed length. The first and the last are anchored; each one
between takes the leftmost position that is left, so nothing is ever tried again.
"""

import re
from collections.abc import Callable, Iterator

from storage.domain import limits
from storage.domain.filters.sql.errors import ConditionInvalid

LikeTest = Callable[[str], bool | None]
"""Test of a text; None if it is too long for the pattern."""

_Segment = list[str | None]
"""Characters, with None for any character."""


def compile_like(pattern: str, escape: str = "") -> LikeTest:
    """Compile a LIKE pattern to a test of texts.

    Raises ConditionInvalid.
    """
    if len(pattern) > limits.LIKE_PATTERN_CHARACTERS_MAX:
        detail = f"A LIKE pattern has at most {limits.LIKE_PATTERN_CHARACTERS_MAX} characters."
        raise ConditionInvalid(detail)
    head, *rest = _segments(pattern, escape)
    if not rest:
        return _fixed(head)
    *middles, tail = rest
    test = _floating(head, [segment for segment in middles if segment], tail)
    return _bounded(test) if any(None in segment for segment in middles) else test


def _segments(pattern: str, escape: str) -> list[_Segment]:
    segments: list[_Segment] = [[]]
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            segments[-1].append(_escaped(characters, escape))
        elif character == "%":
            segments.append([])
        else:
            segments[-1].append(None if character == "_" else character)
    return segments


def _escaped(characters: Iterator[str], escape: str) -> str:
    for character in characters:
        return character
    raise ConditionInvalid(f"A LIKE pattern cannot end with its escape character '{escape}'.")


def _regex(segment: _Segment) -> re.Pattern[str]:
    """Compile a segment to a regular expression without repetition."""
    source = "".join("." if character is None else re.escape(character) for character in segment)
    return re.compile(source, re.DOTALL)


def _fixed(segment: _Segment) -> LikeTest:
    match = _regex(segment).fullmatch
    return lambda text: match(text) is not None


def _floating(head: _Segment, middles: list[_Segment], tail: _Segment) -> LikeTest:
    starts = _regex(head).match
    ends = _regex(tail).match
    searches = [_regex(segment).search for segment in middles]
    head_length, tail_length = len(head), len(tail)

    def test(text: str) -> bool:
        limit = len(text) - tail_length
        if head_length > limit or not starts(text) or not ends(text, limit):
            return False
        position = head_length
        for search in searches:
            occurrence = search(text, position, limit)
            if occurrence is None:
                return False
            position = occurrence.end()
        return True

    return test


def _bounded(test: LikeTest) -> LikeTest:
    return lambda text: test(text) if len(text) <= limits.LIKE_TEXT_CHARACTERS_MAX else None
