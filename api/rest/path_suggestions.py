"""Suggestions for requests whose path or method has no route."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from api.http.routing import Route

_PATH_MAX = 200  # longer ones resemble nothing
_VERSION = "v1"

_FOREIGN_SEGMENTS = {
    "ack": "settle",
    "acknowledge": "settle",
    "consume": "receive",
    "consumer-groups": "groups",
    "consumers": "groups",
    "dlq": "dead-letters",
    "nack": "settle",
    "partitions": "shards",
    "poll": "receive",
    "produce": "records",
    "publish": "messages",
    "purge": "purges",
    "redrive": "redrives",
    "send": "messages",
    "topics": "streams",
    "users": "keys",
}
"""Segments that other services have, by the one that stands for them here."""


class RoutePattern(NamedTuple):
    """A method and the path that it has a route for, such as `/v1/queues/{queue}`."""

    method: str
    path: str


def operations_of(
    hot_routes: Iterable[Route], control_routes: Iterable[BaseRoute]
) -> Iterator[RoutePattern]:
    """Yield the documented operations, the most frequently called first."""
    for hot in hot_routes:
        yield RoutePattern(hot.method, hot.path)
    for route in control_routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            yield from (RoutePattern(method, route.path) for method in sorted(route.methods or ()))


class PathSuggestions:
    """Suggestions from the operations of the API; those that come first are preferred."""

    def __init__(self, operations: Iterable[RoutePattern]) -> None:
        self._operations = tuple(operations)

    def of_path(self, method: str, path: str) -> str:
        """Return the operation that a path without a route resembles; empty if none."""
        segments = _segments(path)
        if len(path) > _PATH_MAX or not all(segments):
            return ""
        return self._nearest(method, segments) or self._nearest(method, [_VERSION, *segments])

    def _nearest(self, method: str, segments: Sequence[str]) -> str:
        distances = {
            operation: distance
            for operation in self._operations
            if (distance := _distance(segments, _segments(operation.path))) is not None
        }
        if not distances:
            return ""
        nearest = min(distances, key=lambda each: (distances[each], each.method != method))
        return f"{nearest.method} {_filled(nearest.path, segments)}"

    def of_method(self, method: str, path: str) -> str:
        """Return the operation that a method without a route may stand for; empty if none.

        For POST that is the POST one segment below, or the PUT that creates an item of the list.
        """
        if method != "POST":
            return ""
        segments = _segments(path)
        for operation in self._operations:
            template = _segments(operation.path)
            expected = "PUT" if _is_parameter(template[-1]) else method
            if operation.method == expected and _distance(segments, template[:-1]) == 0:
                return f"{expected} {_filled(operation.path, segments)}"
        return ""


def _distance(segments: Sequence[str], template: Sequence[str]) -> int | None:
    """Return how many segments differ from those of a path; None if they do not resemble it."""
    if len(segments) != len(template):
        return None
    differing = [
        (segment, expected)
        for segment, expected in zip(segments, template, strict=True)
        if not _is_parameter(expected) and segment != expected
    ]
    if all(_resembles(*pair) for pair in differing):
        return len(differing)
    return None


def _resembles(segment: str, expected: str) -> bool:
    segment = segment.lower()
    return _FOREIGN_SEGMENTS.get(segment) == expected or bool(
        get_close_matches(segment, [expected], n=1, cutoff=0.7)
    )


def _segments(path: str) -> list[str]:
    return path.strip("/").split("/")


def _is_parameter(segment: str) -> bool:
    return segment.startswith("{")


def _filled(path: str, segments: Sequence[str]) -> str:
    """Return a path with the parameters of a request, as far as that has them."""
    template = _segments(path)
    named = [
        segment if _is_parameter(expected) else expected
        for segment, expected in zip(segments, template, strict=False)
    ]
    return "/" + "/".join([*named, *template[len(named) :]])
