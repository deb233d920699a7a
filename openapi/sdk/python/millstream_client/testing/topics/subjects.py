"""Subjects of messages, and their patterns with the wildcards `*`, `#` and `>`."""

import re

from millstream_client.testing.problems import Problem, invalid

BYTES_MAX = 255
WORDS_MAX = 32
WILDCARDS = ("*", "#", ">")

_TEXT = re.compile(r"[^\s\x00-\x1f\x7f-\x9f]*")


def check_subject(subject: str) -> None:
    """Check a subject, which may be empty. Raises Problem."""
    fault = _text_fault(subject)
    if fault is None and any(wildcard in subject for wildcard in WILDCARDS):
        fault = ("A subject must not contain '*', '#' or '>'", "invalid")
    if fault is not None:
        raise invalid("/subject", *fault)


def check_pattern(pattern: str, pointer: str) -> None:
    """Check a pattern. Raises Problem."""
    words = pattern.split(".")
    fault = _text_fault(pattern)
    if fault is None and any(
        len(word) > 1 and wildcard in word for word in words for wildcard in WILDCARDS
    ):
        fault = ("A wildcard '*', '#' or '>' must be a whole word", "invalid")
    if fault is None and ">" in words[:-1]:
        fault = ("'>' must be the last word", "invalid")
    if fault is not None:
        raise match_invalid(pointer, *fault)


def match_invalid(pointer: str, detail: str, code: str = "invalid") -> Problem:
    """Return the problem of an invalid match."""
    fault = {"pointer": pointer, "detail": detail, "code": code}
    return Problem("match_invalid", "The match is invalid.", errors=[fault])


def _text_fault(text: str) -> tuple[str, str] | None:
    if not _TEXT.fullmatch(text):
        return "A subject must not contain whitespace or control characters", "invalid"
    if len(text.encode()) > BYTES_MAX:
        return f"At most {BYTES_MAX} bytes", "too_long"
    words = text.split(".") if text else []
    if "" in words:
        return "A subject is words with one dot between each two", "invalid"
    return (f"At most {WORDS_MAX} words", "too_many") if len(words) > WORDS_MAX else None


def matches_subject(pattern: str, subject: str) -> bool:
    """Return whether a pattern matches a subject."""
    parts = [part for word in _words(pattern) for part in (("*", "#") if word == ">" else (word,))]
    states = _closure({0}, parts)
    for word in _words(subject):
        states = _closure({state for nth in states for state in _steps(nth, word, parts)}, parts)
    return len(parts) in states


def _words(text: str) -> list[str]:
    return text.split(".") if text else []


def _steps(state: int, word: str, parts: list[str]) -> list[int]:
    if state == len(parts):
        return []
    if parts[state] == "#":
        return [state]
    return [state + 1] if parts[state] in {"*", word} else []


def _closure(states: set[int], parts: list[str]) -> set[int]:
    """Add the states after each `#`, which may match no word."""
    closed = set(states)
    for state in range(len(parts)):
        if state in closed and parts[state] == "#":
            closed.add(state + 1)
    return closed
