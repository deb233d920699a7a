"""Match of a route: parsed from its wire form, compiled, and explained.

    {"subject": ["order.*.eu", "refund.#"], "filter": {"body": {"total": [{"numeric": [">", 100]}]}},
     "where": "headers.retries < 3 OR body.vip"}

All parts of a match must hold; of a list of matches, any. No match and `{}` are for every message.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, MatchInvalid, ValidationFailed
from storage.domain.filters.conditions import ConditionInvalid, SqlCondition
from storage.domain.filters.conjunctions import Conjunction
from storage.domain.filters.documents import Document
from storage.domain.filters.patterns import parse_pattern
from storage.domain.filters.reasons import PatternInvalid, pointer_token
from storage.domain.filters.subjects import (
    check_subject_pattern,
    matches_all_subjects,
    matches_subject,
)
from storage.domain.log.json_body import NOTHING

Cost = Literal["indexed", "scanned"]


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions on a message: a pattern for its subject, a filter, and an SQL condition."""

    subject: tuple[str, ...] = ()
    filter: dict[str, Any] | None = None
    where: str = ""

    @property
    def takes_all(self) -> bool:
        """Return whether it has no condition."""
        return not self.subject and self.filter is None and not self.where


class FailedCondition(msgspec.Struct, frozen=True):
    """Condition that a message does not meet: the nth match, the path, and the values there."""

    match: int
    path: str
    expected: object
    actual: list[object]


def parse_matches(value: object, pointer: str = "/match") -> tuple[Match, ...]:
    """Parse a match, or a list of up to MATCHES_MAX; empty if it is for every message.

    Raises MatchInvalid with all faults.
    """
    if value is None or value == {}:
        return ()
    items = value if isinstance(value, list) else [value]
    if not 1 <= len(items) <= limits.MATCHES_MAX:
        detail = f"Specify 1 to {limits.MATCHES_MAX} matches"
        raise MatchInvalid(None, FieldFault(pointer, detail, "out_of_range"))
    faults: list[FieldFault] = []
    matches = [
        _parse_match(item, f"{pointer}/{nth}" if items is value else pointer, faults)
        for nth, item in enumerate(items)
    ]
    if faults:
        raise MatchInvalid(None, *faults)
    return tuple(matches)


def _parse_match(value: Any, pointer: str, faults: list[FieldFault]) -> Match:
    if not isinstance(value, dict):
        faults.append(FieldFault(pointer, "A match must be an object"))
        return Match()
    faults += (
        FieldFault(f"{pointer}/{pointer_token(name)}", "Unknown field", "unknown_field")
        for name in map(str, value)
        if name not in Match.__struct_fields__
    )
    return Match(
        subject=_parse_subjects(value.get("subject"), f"{pointer}/subject", faults),
        filter=_parse_filter(value.get("filter"), f"{pointer}/filter", faults),
        where=_parse_where(value.get("where"), f"{pointer}/where", faults),
    )


def _parse_subjects(value: Any, pointer: str, faults: list[FieldFault]) -> tuple[str, ...]:
    if value is None:
        return ()
    patterns = value if isinstance(value, list) else [value]
    if not 1 <= len(patterns) <= limits.MATCH_SUBJECTS_MAX:
        detail = f"Specify 1 to {limits.MATCH_SUBJECTS_MAX} patterns"
        faults.append(FieldFault(pointer, detail, "out_of_range"))
        return ()
    for nth, pattern in enumerate(patterns):
        location = f"{pointer}/{nth}" if patterns is value else pointer
        if not isinstance(pattern, str):
            faults.append(FieldFault(location, "A subject pattern must be a string"))
            continue
        try:
            check_subject_pattern(pattern, location)
        except ValidationFailed as invalid:
            faults += invalid.faults
    return tuple(pattern for pattern in patterns if isinstance(pattern, str))


def _parse_filter(value: Any, pointer: str, faults: list[FieldFault]) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        parse_pattern(value, pointer)
    except PatternInvalid as invalid:
        faults.append(FieldFault(invalid.pointer, invalid.reason))
        return None
    return dict(value)


def _parse_where(value: Any, pointer: str, faults: list[FieldFault]) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        faults.append(FieldFault(pointer, "A condition must be a string"))
        return ""
    try:
        SqlCondition(value)
    except ConditionInvalid as invalid:
        faults.append(FieldFault(pointer, str(invalid)))
    return value


class Alternative:
    """Conjunction of a match: subject patterns, conditions of the filter, SQL condition."""

    __slots__ = ("condition", "conjunction", "match", "subjects", "where")

    def __init__(
        self,
        match: int,
        subjects: tuple[str, ...],
        conjunction: Conjunction,
        condition: str,
    ) -> None:
        self.match = match
        self.subjects = subjects
        self.conjunction = conjunction
        self.condition = condition
        self.where = SqlCondition(condition) if condition else None

    @property
    def takes_all(self) -> bool:
        """Return whether it has no condition."""
        return not (self.subjects or self.conjunction.conditions or self.where)

    @property
    def cost(self) -> Cost:
        """Return whether it must be asked for each message."""
        conditions = self.conjunction.conditions
        if self.subjects or any(condition.is_indexed for condition in conditions):
            return "indexed"
        return "indexed" if self.takes_all else "scanned"

    def holds(self, document: Document) -> bool:
        """Return whether all of its parts hold."""
        return (
            self.has_subject(document.subject)
            and self.conjunction.holds(document.leaves)
            and (self.where is None or self.where.holds(document))
        )

    def has_subject(self, subject: str) -> bool:
        """Return whether a pattern matches the subject, or it has none."""
        return not self.subjects or any(
            matches_subject(pattern, subject) for pattern in self.subjects
        )

    def explain(self, document: Document) -> list[FailedCondition]:
        """Return its conditions that the document does not meet."""
        return [
            *self._failed_subject(document),
            *self._failed_fields(document),
            *self._failed_where(document),
        ]

    def _failed_subject(self, document: Document) -> list[FailedCondition]:
        if self.has_subject(document.subject):
            return []
        return [FailedCondition(self.match, "subject", list(self.subjects), [document.subject])]

    def _failed_fields(self, document: Document) -> list[FailedCondition]:
        return [
            FailedCondition(
                self.match,
                condition.path,
                condition.expected,
                [value for value, _ in document.leaves(condition.path)],
            )
            for condition in self.conjunction.failed_conditions(document.leaves)
        ]

    def _failed_where(self, document: Document) -> list[FailedCondition]:
        if self.where is None or self.where.holds(document):
            return []
        return [
            FailedCondition(self.match, ".".join(path), self.condition, _present(value))
            for path, value in self.where.explain(document) or [(("where",), NOTHING)]
        ]


def _present(value: object) -> list[object]:
    return [] if value is NOTHING else [value]


class CompiledMatch:
    """Matches of a route, any of which takes a message; without any, each message is taken."""

    def __init__(self, matches: Iterable[Match]) -> None:
        self.alternatives = _alternatives(tuple(matches))

    @property
    def cost(self) -> Cost:
        """Return `indexed`, or `scanned` if it must be asked for each message."""
        scanned = any(alternative.cost == "scanned" for alternative in self.alternatives)
        return "scanned" if scanned else "indexed"

    @property
    def has_where_alone(self) -> bool:
        """Return whether an SQL condition stands without a subject or a filter that limits it."""
        return any(
            alternative.where is not None
            and not (alternative.subjects or alternative.conjunction.conditions)
            for alternative in self.alternatives
        )

    def matches(self, document: Document) -> bool:
        """Return whether a match takes the document."""
        return any(alternative.holds(document) for alternative in self.alternatives)

    def explain(self, document: Document) -> list[FailedCondition]:
        """Return the conditions that fail, by match; empty if the document is taken."""
        failed: dict[bytes, FailedCondition] = {}
        for alternative in self.alternatives:
            conditions = alternative.explain(document)
            if not conditions:
                return []
            failed |= {_identity(condition): condition for condition in conditions}
        return list(failed.values())


def _identity(failed: FailedCondition) -> bytes:
    """Return what the failures of one condition in several alternatives share."""
    return msgspec.json.encode((failed.match, failed.path, failed.expected))


def _alternatives(matches: tuple[Match, ...]) -> tuple[Alternative, ...]:
    everything = (Conjunction(()),)
    return tuple(
        Alternative(nth, _needed_subjects(match.subject), conjunction, match.where)
        for nth, match in enumerate(matches or (Match(),))
        for conjunction in (everything if match.filter is None else parse_pattern(match.filter))
    )


def _needed_subjects(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns, or none if they match every subject."""
    return () if any(map(matches_all_subjects, patterns)) else tuple(dict.fromkeys(patterns))
