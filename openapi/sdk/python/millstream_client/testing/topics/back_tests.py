"""Back-tests of the in-memory service: matches evaluated on the messages that a log has."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream_client.testing.definitions import seconds_of
from millstream_client.testing.problems import invalid
from millstream_client.testing.topics.matches import UNMATCHED, check_match, failed_paths
from millstream_client.testing.topics.published import PublishedMessage
from millstream_client.testing.topics.routed_log import RoutedLog

MESSAGES_MAX = 200_000
SAMPLES_MAX, SAMPLES_DEFAULT = 100, 10
FIELDS = ("match", "compare_with", "start_time", "end_time", "samples_max")


class BackTestResult:
    """Messages that a match takes, of those that were evaluated.

    Ids of gained and lost ones: None unless a route is compared.
    """

    def __init__(self, *, has_other: bool) -> None:
        self._evaluated = 0
        self._matched: list[str] = []
        self._gained: list[str] | None = [] if has_other else None
        self._lost: list[str] | None = [] if has_other else None
        self._failed: Counter[str] = Counter()

    def add(self, message_id: str, failed: set[str], *, is_of_other: bool) -> None:
        """Add a message that fails some conditions, and that the compared route takes or not."""
        self._evaluated += 1
        self._failed.update(failed)
        if not failed:
            self._matched.append(message_id)
        if not failed and not is_of_other and self._gained is not None:
            self._gained.append(message_id)
        if failed and is_of_other and self._lost is not None:
            self._lost.append(message_id)

    def shown(self, samples_max: int, *, complete: bool) -> dict[str, Any]:
        """Return the result as the API does."""
        ids = {"matched": self._matched, "gained": self._gained, "lost": self._lost}
        return {
            "evaluated": self._evaluated,
            **{name: None if some is None else len(some) for name, some in ids.items()},
            "failed_by_path": dict(sorted(self._failed.items(), key=lambda one: (-one[1], one[0]))),
            "samples": {name: (some or [])[:samples_max] for name, some in ids.items()},
            "complete": complete,
        }


@dataclass(frozen=True)
class BackTest:
    """Back-test whose messages and matches are fixed.

    `compared`: the match of the route `compare_with`.
    """

    topic: str
    log_id: str
    match: Any
    compare_with: str | None
    compared: Any
    start_time: str | None
    end_time: str | None
    samples_max: int
    messages: Sequence[PublishedMessage] = field(compare=False, repr=False)

    def evaluate(self, topic: RoutedLog, messages_max: int = sys.maxsize) -> dict[str, Any]:
        """Evaluate the matches on the messages that the topic still has."""
        result = BackTestResult(has_other=self.compare_with is not None)
        stored = {message.id for message in topic.messages}
        evaluated = [one for one in self.messages if one.id in stored][:messages_max]
        for message in evaluated:
            failed = _failed(topic, self.match, message)
            is_of_other = not _failed(topic, self.compared, message)
            result.add(message.id, failed, is_of_other=is_of_other)
        return result.shown(self.samples_max, complete=len(evaluated) == len(self.messages))

    def unevaluated(self) -> dict[str, Any]:
        """Return the result before any message is evaluated."""
        result = BackTestResult(has_other=self.compare_with is not None)
        return result.shown(self.samples_max, complete=False)


def back_test_of(topic: RoutedLog, fields: dict[str, Any]) -> BackTest:
    """Return the back-test of a request. Raises Problem."""
    for name in fields:
        if name not in FIELDS:
            raise invalid(f"/{name}", f"Unknown field {name!r}", "unknown_field")
    samples_max = _bounded(fields, "samples_max", SAMPLES_DEFAULT, SAMPLES_MAX)
    match, compare_with = fields.get("match"), fields.get("compare_with")
    check_match(match)
    _check_unmatched(topic, match, "/match")
    compared = None
    if compare_with is not None:
        compared = topic.routes.get(compare_with).config["match"]
        _check_unmatched(topic, compared, "/compare_with")
    times = {name: fields.get(name) for name in ("start_time", "end_time")}
    return BackTest(
        topic=topic.name,
        log_id=topic.log.id,
        match=match,
        compare_with=compare_with,
        compared=compared,
        samples_max=samples_max,
        messages=_between(topic.messages, **times),
        **times,
    )


def run(topic: RoutedLog, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the result of the back-test that a call waits for. Raises Problem."""
    messages_max = _bounded(fields, "messages_max", MESSAGES_MAX, MESSAGES_MAX)
    others = {name: value for name, value in fields.items() if name != "messages_max"}
    return back_test_of(topic, others).evaluate(topic, messages_max)


def _bounded(fields: dict[str, Any], name: str, default: int, most: int) -> int:
    number = int(fields.get(name, default))
    if not 0 <= number <= most:
        raise invalid(f"/{name}", f"Must be 0 to {most}", "out_of_range")
    return number


def _check_unmatched(topic: RoutedLog, match: Any, pointer: str) -> None:
    if topic.is_of_stream and match == UNMATCHED:
        detail = "A stream does not store which of its records were unmatched"
        raise invalid(pointer, detail, "not_supported")


def _between(
    messages: Sequence[PublishedMessage], start_time: str | None, end_time: str | None
) -> list[PublishedMessage]:
    """Return the messages that were accepted between two times, by shard."""
    start = seconds_of(start_time) if start_time else 0.0
    end = seconds_of(end_time) if end_time else float("inf")
    between = [one for one in messages if start <= one.record.arrived_at < end]
    return sorted(between, key=lambda message: (message.record.shard, message.record.offset))


def _failed(topic: RoutedLog, match: Any, message: PublishedMessage) -> set[str]:
    """Return the paths of the conditions that a message fails; empty if the match takes it."""
    if match == UNMATCHED:
        return {"routes"} if message.copies else set()
    return failed_paths(match, message.document(topic.meta))
