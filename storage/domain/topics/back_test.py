"""Back-test: a match that is evaluated on the messages that a topic has, beside a route's."""

from collections.abc import Iterable
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.names import LogId, TopicName
from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import LogRecord
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.read_match import StoredMatch, StoredMessage
from storage.domain.topics.route import UNMATCHED, compile_match


class BackTest(msgspec.Struct, frozen=True, kw_only=True):
    """Back-test of a match on messages accepted in [start_time_ms, end_time_ms).

    `compare_with` is the name of a route, whose match is evaluated too. `match` is that of a route. `messages_max` bounds a call
    that waits; a job evaluates all messages.
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

    def add(self, other: "BackTestResult", samples_max: int) -> None:
        """Add the result of other messages, whose ids come after those that are here."""
        for name in ("evaluated", "matched", "gained", "lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("matched_ids", "gained_ids", "lost_ids"):
            ids = getattr(self, name)
            ids += getattr(other, name)[: samples_max - len(ids)]
        for path, count in other.failed_by_path.items():
            self.failed_by_path[path] = self.failed_by_path.get(path, 0) + count
        self.complete = self.complete and other.complete


class BackTestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Back-test whose messages and matches are fixed, so every evaluation has one result.

    `compared`: the match that the compared route had. `ranges`: the offsets of the messages, in the stream of `stream_id`.
    `piece_messages`: how many of them a job evaluates together.
    """

    topic: str
    stream_id: LogId
    test: BackTest
    compared: Any = None
    ranges: tuple[OffsetRange, ...]
    piece_messages: int

    @property
    def messages(self) -> int:
        """Number of messages, including those that have expired."""
        return sum(within.end - within.first for within in self.ranges)

    def is_same_test(self, other: "BackTestSpec") -> bool:
        """Return whether another one has the same matches and topic, if not the same messages."""
        mine, others = ((spec.stream_id, spec.test, spec.compared) for spec in (self, other))
        return mine == others

    def pieces(self) -> list[OffsetRange]:
        """Return the ranges, cut into pieces that are evaluated separately, in a fixed order."""
        step = self.piece_messages
        return [
            OffsetRange(within.shard, first, min(first + step, within.end))
            for within in self.ranges
            for first in range(within.first, within.end, step)
        ]


class BackTestEvaluator:
    """Evaluator of the matches of a back-test, with the result so far."""

    def __init__(self, topic: TopicName, spec: BackTestSpec) -> None:
        test = spec.test
        self.result = BackTestResult()
        self._topic = topic
        self._stream_id = spec.stream_id
        self._samples_max = test.samples_max
        self._match = StoredMatch(test.match)
        self._compared = None if test.compare_with is None else StoredMatch(spec.compared)

    def add(self, shard: int, entries: Iterable[LogRecord]) -> None:
        """Evaluate messages of a shard."""
        for entry in entries:
            message_id = TopicMessageId(self._stream_id, shard, entry.offset)
            self._evaluate(message_id, StoredMessage(self._topic, entry.record))

    def _evaluate(self, message_id: TopicMessageId, message: StoredMessage) -> None:
        result = self.result
        result.evaluated += 1
        failed = self._match.explain(message)
        is_taken = not failed
        if is_taken:
            result.matched += 1
            self._sample(result.matched_ids, message_id)
        for path in {condition.path for condition in failed}:
            result.failed_by_path[path] = result.failed_by_path.get(path, 0) + 1
        if self._compared is None or self._compared.takes(message) is is_taken:
            return
        if is_taken:
            result.gained += 1
            self._sample(result.gained_ids, message_id)
        else:
            result.lost += 1
            self._sample(result.lost_ids, message_id)

    def _sample(self, ids: list[TopicMessageId], message_id: TopicMessageId) -> None:
        if len(ids) < self._samples_max:
            ids.append(message_id)


def _range_faults(pointer: str, value: int, most: int) -> list[FieldFault]:
    if 0 <= value <= most:
        return []
    return [FieldFault(pointer, f"Must be 0 to {most}", "out_of_range")]
