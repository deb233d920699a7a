"""Targets of in-memory routes: queues, streams, topics and spreads, and what they lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from millstream_client.testing.problems import Problem, invalid, unsupported
from millstream_client.testing.topics.spreads import KINDS, Target, check_spread, named_targets

OF_TOPIC = "topic:"
"""Prefix of the stream that has the messages of a topic."""

OF_STREAM = "stream:"
OF_QUEUE = "queue:"
"""Prefixes of the names under which a stream and a queue are the source of routes."""

_SOURCES = {"queue": OF_QUEUE, "stream": OF_STREAM, "topic": ""}
_FORBIDDEN = (
    ("stream", OF_TOPIC, "A topic is written by publishing"),
    ("topic", OF_STREAM, "Specify the stream as `stream`"),
    ("topic", OF_QUEUE, "Specify the queue as `queue`"),
    ("queue", "route:", "The queue belongs to a route"),
)


def check_target(target: Target) -> None:
    """Check the form of a target. Raises Problem."""
    given = {name: value for name, value in target.items() if value is not None}
    if "url" in given:
        raise unsupported("route to a URL")
    for name in given.keys() - {*KINDS, "spread", "by"}:
        raise invalid(f"/target/{name}", "Only a URL has it", "not_supported")
    if len(given.keys() - {"by"}) != 1:
        detail = "Specify exactly one of queue, stream, topic, spread and url"
        raise invalid("/target", detail, "exclusive")
    if "spread" in given:
        check_spread(given)
        for number, member in enumerate(given["spread"]):
            _check_name(member, f"/target/spread/{number}")
        return
    if "by" in given:
        raise invalid("/target/by", "Only a spread has it", "not_supported")
    _check_name(given, "/target")


def _check_name(target: Target, pointer: str) -> None:
    for kind, prefix, detail in _FORBIDDEN:
        if str(target.get(kind) or "").startswith(prefix):
            raise invalid(f"{pointer}/{kind}", detail, "not_allowed")


def check_cycle(
    name: str, described: str, target: Target, targets_of: Callable[[str], Iterable[Target]]
) -> None:
    """Raise Problem if a target leads back to the source of routes with this name.

    `targets_of`: the targets of the routes that the source of a name has.
    """
    reached, pending = set[str](), _sources(target)
    while pending:
        current = pending.pop()
        if current == name:
            raise Problem("route_cycle", f"{described} would get its own messages.")
        if current not in reached:
            reached.add(current)
            pending += [source for one in targets_of(current) for source in _sources(one)]


def _sources(target: dict[str, Any]) -> list[str]:
    """Return the names under which what gets copies may have routes itself."""
    return [
        f"{prefix}{one[kind]}"
        for one in named_targets(target)
        for kind, prefix in _SOURCES.items()
        if one.get(kind) is not None
    ]


def read_only() -> Problem:
    """Return the problem of a publication to a topic whose source is a stream or a queue."""
    detail = "The source of the topic is a stream or a queue; append or send to that instead."
    return Problem("topic_read_only", detail)
