"""Back-test: a match that is evaluated on the messages that a topic has, beside a route's."""

from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.route import UNMATCHED, compile_match


class BackTest(msgspec.Struct, frozen=True, kw_only=True):
    """Back-test of a match on messages accepted in [start_time_ms, end_time_ms).

    `compare_with` is the name of a route, whose match is evaluated too. `match` is that of a route.
    """

    match: Any = None
    compare_with: str | None = None
    start_time_ms: int | None = None
    end_time_ms: int | None = None
    messages_max: int = limits.BACK_TEST_MESSAGES_MAX
    samples_max: int = limits.BACK_TEST_SAMPLES_DEFAULT

    def check(self) -> None:
        """Raise MatchInvalid or ValidationFailed."""
        faults = [
            fault
            for pointer, value, most in (
                ("/messages_max", self.messages_max, limits.BACK_TEST_MESSAGES_MAX),
                ("/samples_max", self.samples_max, limits.BACK_TEST_SAMPLES_MAX),
            )
            for fault in _range_faults(pointer, value, most)
        ]
        if faults:
            raise ValidationFailed("The back-test is invalid.", *faults)
        if self.match != UNMATCHED:
            compile_match(self.match)


class BackTestResult(msgspec.Struct):
    """Messages that a match takes, of those that were evaluated.

    `gained` and `lost`: messages that the match takes and the compared route does not, and the other way round; ids of the first
    of them. `failed_by_path` counts, by the path of a condition, the messages that fail it. `complete`: all messages of the range
    were evaluated.
    """

    evaluated: int = 0
    matched: int = 0
    gained: int = 0
    lost: int = 0
    matched_ids: list[TopicMessageId] = []
    gained_ids: list[TopicMessageId] = []
    lost_ids: list[TopicMessageId] = []
    failed_by_path: dict[str, int] = {}
    complete: bool = True


def _range_faults(pointer: str, value: int, most: int) -> list[FieldFault]:
    if 0 <= value <= most:
        return []
    return [FieldFault(pointer, f"Must be 0 to {most}", "out_of_range")]
