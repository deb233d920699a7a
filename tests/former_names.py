"""Former names of members, which answers carry beside the current ones for one release."""

from collections.abc import Iterator, Mapping
from typing import Any

FORMER_NAMES = {
    "away": "disconnected",
    "crashes": "crash_count",
    "disabled_because": "disabled_reason",
    "door": "protocol",
    "everywhere": "all_namespaces",
    "receives": "receive_count",
    "stores_too_much": "over_storage_quota",
    "what": "type",
    "whole": "complete",
    "wish": "requested_state",
}


def current_names(members: Mapping[str, Any]) -> set[str]:
    """Return the names of an answer's members without the former ones."""
    return {name for name in members if FORMER_NAMES.get(name) not in members}


def pairs_of_names(answer: Any) -> Iterator[tuple[str, bool]]:
    """Yield each former name in an answer, and whether the current one has the same value."""
    if isinstance(answer, list):
        for item in answer:
            yield from pairs_of_names(item)
    elif isinstance(answer, dict):
        for name, value in answer.items():
            if (current := FORMER_NAMES.get(name)) is not None:
                yield name, current in answer and answer[current] == value
            yield from pairs_of_names(value)
