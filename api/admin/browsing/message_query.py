"""Query of the lists of messages and dead letters, from the page's URL."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Query

from api.admin.lists import Words
from api.config.durations import has_units, parse_duration
from api.native.fields import moment_ms
from storage.domain import limits
from storage.domain.clock import SystemClock
from storage.domain.errors import ValidationFailed
from storage.domain.queues.message import MessageState
from storage.domain.streams.record_filter import Filter
from storage.queues.message_filter import MessageFilter

Terms = Annotated[list[str], Query(max_length=limits.FILTER_TERMS_MAX)]
Columns = Annotated[str, Query(max_length=2_000)]
_CLOCK = SystemClock()


class MessageQuery(NamedTuple):
    """Filter, columns and start of a list of messages. `start` and `end`: when they were sent."""

    state: MessageState | None
    reason: str
    text: str
    groups: tuple[str, ...]
    headers: tuple[str, ...]
    body: tuple[str, ...]
    start: str
    end: str
    columns: str
    after: int

    def to_filter(self) -> MessageFilter:
        """Return the filter. Raises ValidationFailed."""
        return MessageFilter(
            record=Filter.of_terms(self.groups, self.headers, self.body),
            text=self.text,
            reason=self.reason,
            from_ms=parse_time_ms(self.start, "/from"),
            to_ms=parse_time_ms(self.end, "/to"),
        )

    @property
    def link_parameters(self) -> dict[str, Any]:
        """Parameters for links to the same list."""
        return self.filter_parameters | {"after": self.after if self.after >= 0 else None}

    @property
    def filter_parameters(self) -> dict[str, Any]:
        """Parameters for links to the first page of the list."""
        return {
            "state": self.state,
            "reason": self.reason,
            "q": self.text,
            "group": self.groups,
            "header": self.headers,
            "body": self.body,
            "from": self.start,
            "to": self.end,
            "columns": self.columns,
        }

    @property
    def has_conditions(self) -> bool:
        """True if the fields that are folded away restrict the list."""
        return bool(self.groups or self.headers or self.body or self.start or self.end)

    @property
    def is_restricted(self) -> bool:
        """True if the list has not all messages."""
        return bool(self.state or self.reason or self.text or self.has_conditions)


def parse_query(
    *,
    state: MessageState | None = None,
    reason: Annotated[str, Query(max_length=limits.REASON_CHARACTERS_MAX)] = "",
    q: Words = "",
    group: Terms = [],  # noqa: B006
    header: Terms = [],  # noqa: B006
    body: Terms = [],  # noqa: B006
    start: Annotated[str, Query(alias="from", max_length=200)] = "",
    end: Annotated[str, Query(alias="to", max_length=200)] = "",
    columns: Columns = "",
    after: Annotated[int, Query(ge=-1, le=limits.OFFSET_MAX)] = -1,
) -> MessageQuery:
    """Parse the URL's parameters."""
    groups, headers, conditions = map(present_terms, (group, header, body))
    return MessageQuery(state, reason, q, groups, headers, conditions, start, end, columns, after)


def present_terms(terms: Sequence[str]) -> tuple[str, ...]:
    """Return the terms that are not empty: a form sends its empty fields too."""
    return tuple(term for term in terms if term)


MessageQueryDep = Annotated[MessageQuery, Depends(parse_query)]


def parse_time_ms(text: str, pointer: str = "/time") -> int | None:
    """Parse a typed time to milliseconds since 1970; None if it is empty.

    It is an ISO 8601 time, UTC by default, or a duration before now, such as 10m. Raises ValidationFailed.
    """
    text = text.strip()
    if not text:
        return None
    try:
        if has_units(text):
            return _CLOCK.now_ms() - round(parse_duration(text) * limits.SECOND_MS)
        parsed = datetime.fromisoformat(text)
    except ValueError:
        detail = "Expected a time such as 2026-01-31 12:00:00, or a duration before now such as 10m"
        raise ValidationFailed.at(pointer, detail, "invalid") from None
    return moment_ms(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
