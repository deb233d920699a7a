"""Dotted subjects, their patterns, and a trie of patterns.

`*` matches one word; `#` none or more, anywhere; `>` one or more, at the end: RabbitMQ's and NATS's wildcards.
The empty subject has no words.
"""

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Generic, TypeVar

from storage.domain import limits
from storage.domain.errors import ValidationFailed

Item = TypeVar("Item", bound=Hashable)

_SUBJECT = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]*")
_EXPRESSIONS = {"*": r"\.[^.]++", "#": r"(?:\.[^.]++)*"}
_WILDCARDS = ("*", "#", ">")


@lru_cache(maxsize=4096)  # once for each publication
def check_subject(text: str, pointer: str = "/subject") -> None:
    """Check a subject, which may be empty. Raises ValidationFailed."""
    _check_text(text, pointer)
    if any(wildcard in text for wildcard in _WILDCARDS):
        raise ValidationFailed.at(pointer, "A subject must not contain '*', '#' or '>'")


def check_subject_pattern(text: str, pointer: str = "/subject") -> None:
    """Check a subject pattern. Raises ValidationFailed."""
    _check_text(text, pointer)
    words = text.split(".")
    if any(len(word) > 1 and wildcard in word for word in words for wildcard in _WILDCARDS):
        raise ValidationFailed.at(pointer, "A wildcard '*', '#' or '>' must be a whole word")
    if ">" in words[:-1]:
        raise ValidationFailed.at(pointer, "'>' must be the last word")


def _check_text(text: str, pointer: str) -> None:
    if not _SUBJECT.fullmatch(text):
        detail = "A subject must not contain whitespace or control characters"
        raise ValidationFailed.at(pointer, detail)
    if len(text.encode()) > limits.SUBJECT_BYTES_MAX:
        raise ValidationFailed.at(pointer, f"At most {limits.SUBJECT_BYTES_MAX} bytes", "too_long")
    words = text.split(".") if text else []
    if "" in words:
        raise ValidationFailed.at(pointer, "A subject is words with one dot between each two")
    if len(words) > limits.SUBJECT_TOKENS_MAX:
        raise ValidationFailed.at(pointer, f"At most {limits.SUBJECT_TOKENS_MAX} words", "too_many")


def split_subject(text: str) -> list[str]:
    """Return the words of a subject; none for the empty one."""
    return text.split(".") if text else []


@lru_cache(maxsize=10_000)
def normalized_pattern(pattern: str) -> tuple[str, ...]:
    """Return the words of a pattern, with each run of wildcards in its one normal form.

    `>` is `*.#`, `#.#` is `#`, and `#.*` is `*.#`: equal patterns have equal words.
    """
    parts: list[str] = []
    for word in split_subject(pattern):
        for part in ("*", "#") if word == ">" else (word,):
            if part == "*" and parts and parts[-1] == "#":
                parts.insert(-1, part)
            elif not (part == "#" and parts and parts[-1] == "#"):
                parts.append(part)
    return tuple(parts)


def matches_all_subjects(pattern: str) -> bool:
    """Return whether a pattern matches every subject."""
    return normalized_pattern(pattern) == ("#",)


def matches_subject(pattern: str, subject: str) -> bool:
    """Return whether a pattern matches a subject; steps are bounded by their words' product."""
    expression = _expression(pattern)
    if expression is not None:
        return expression.fullmatch(f".{subject}" if subject else "") is not None
    words = normalized_pattern(pattern)
    states = _closure({0}, words)
    for word in split_subject(subject):
        states = _closure({state for n in states for state in _steps(n, word, words)}, words)
    return len(words) in states


@lru_cache(maxsize=10_000)
def _expression(pattern: str) -> re.Pattern[str] | None:
    """Compile a pattern to a regular expression for a subject with a dot before each word.

    Readers ask it for each record, and it takes a tenth of the time of the steps. None for several `#`, among which an expression
    would try every division of the words.
    """
    words = normalized_pattern(pattern)
    if words.count("#") > 1:
        return None
    return re.compile("".join(_EXPRESSIONS.get(word) or rf"\.{re.escape(word)}" for word in words))


def _steps(state: int, word: str, words: tuple[str, ...]) -> list[int]:
    if state == len(words):
        return []
    if words[state] == "#":
        return [state]
    return [state + 1] if words[state] in ("*", word) else []


def _closure(states: set[int], words: tuple[str, ...]) -> set[int]:
    """Add the states after each `#`, which may match no word."""
    return states | {state + 1 for state in states if state < len(words) and words[state] == "#"}


class SubjectNode(Generic[Item]):
    """Node of a trie of subject patterns; a `#` node is its own successor for every word."""

    __slots__ = ("is_multiple", "items", "literals", "multiple", "single")

    def __init__(self, is_multiple: bool = False) -> None:
        self.literals: dict[str, SubjectNode[Item]] = {}
        self.single: SubjectNode[Item] | None = None
        self.multiple: SubjectNode[Item] | None = None
        self.is_multiple = is_multiple
        self.items: set[Item] = set()

    @property
    def is_empty(self) -> bool:
        """Return whether no pattern ends at or below this node."""
        return not (self.items or self.literals or self.single or self.multiple)

    def child(self, word: str) -> "SubjectNode[Item]":
        """Return the child for a word of a pattern; adds it if there is none."""
        if word == "*":
            self.single = self.single or SubjectNode()
            return self.single
        if word == "#":
            self.multiple = self.multiple or SubjectNode(is_multiple=True)
            return self.multiple
        return self.literals.setdefault(word, SubjectNode())

    def existing_child(self, word: str) -> "SubjectNode[Item] | None":
        """Return the child for a word of a pattern, if there is one."""
        if word == "*":
            return self.single
        return self.multiple if word == "#" else self.literals.get(word)

    def successors(self, word: str) -> "list[SubjectNode[Item]]":
        """Return the nodes that one more word of a subject leads to."""
        nodes = [self] if self.is_multiple else []
        if literal := self.literals.get(word):
            nodes.append(literal)
        if self.single:
            nodes.append(self.single)
        return nodes

    def remove(self, word: str) -> None:
        """Remove the child for a word of a pattern."""
        if word == "*":
            self.single = None
        elif word == "#":
            self.multiple = None
        else:
            self.literals.pop(word, None)


class SubjectTrie(Generic[Item]):
    """Items by subject pattern, with the answers for recent subjects cached until a change."""

    def __init__(self) -> None:
        self._root: SubjectNode[Item] = SubjectNode()
        self._answers: dict[str, frozenset[Item]] = {}
        self._answers_items = 0

    @property
    def is_empty(self) -> bool:
        """Return whether it has no item."""
        return self._root.is_empty

    @property
    def answers_count(self) -> int:
        """Number of subjects whose answer is cached."""
        return len(self._answers)

    def add(self, pattern: str, item: Item) -> None:
        """Add an item to a pattern."""
        node = self._root
        for word in normalized_pattern(pattern):
            node = node.child(word)
        node.items.add(item)
        self._clear_answers()

    def discard(self, pattern: str, item: Item) -> None:
        """Remove an item from a pattern if it is there, and the nodes that lead to nothing else."""
        chain = [self._root]
        words = normalized_pattern(pattern)
        for word in words:
            node = chain[-1].existing_child(word)
            if node is None:
                return
            chain.append(node)
        chain[-1].items.discard(item)
        for parent, word, node in zip(chain[-2::-1], words[::-1], chain[::-1], strict=False):
            if node.is_empty:
                parent.remove(word)
        self._clear_answers()

    def find(self, subject: str) -> frozenset[Item]:
        """Return the items whose pattern matches a subject."""
        answer = self._answers.get(subject)
        if answer is None:
            answer = self._search(subject)
            self._cache(subject, answer)
        return answer

    def _clear_answers(self) -> None:
        self._answers.clear()
        self._answers_items = 0

    def _cache(self, subject: str, answer: frozenset[Item]) -> None:
        if (
            len(self._answers) >= limits.SUBJECT_ANSWERS_MAX
            or self._answers_items + len(answer) > limits.SUBJECT_ANSWERS_ITEMS_MAX
        ):
            self._clear_answers()
        self._answers[subject] = answer
        self._answers_items += len(answer)

    def _search(self, subject: str) -> frozenset[Item]:
        """Follow all patterns at once: each node is in the states of a word at most once."""
        states = _with_multiple([self._root])
        for word in split_subject(subject):
            states = _with_multiple(
                list(dict.fromkeys(node for state in states for node in state.successors(word)))
            )
        return frozenset(item for state in states for item in state.items)


def _with_multiple(nodes: list[SubjectNode[Item]]) -> list[SubjectNode[Item]]:
    """Add the `#` child of each node, which may match no word."""
    multiple = [node.multiple for node in nodes if node.multiple]
    return list(dict.fromkeys(nodes + multiple)) if multiple else nodes
