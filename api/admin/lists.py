"""Lists that are searched, sorted and paged on the server, however long they are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Query

from storage.domain import limits

PAGE_ROWS = 50
"""Rows on one page of a list: what fits a screen or two, and what one flush asks the store about."""

Words = Annotated[str, Query(max_length=200)]
Start = Annotated[int, Query(ge=0, le=limits.LISTED_NAMES_MAX)]
Item = TypeVar("Item")
Sample = TypeVar("Sample")

_TAG = "tag:"


class SearchQuery(NamedTuple):
    """Search field input: a part of a name, and `tag:key=value` any number of times."""

    part: str
    tags: Mapping[str, str]


def parse_search(words: str) -> SearchQuery:
    """Parse a search field.

    `orders tag:team=payments` matches queues with `orders` in the name that team payments tagged.
    """
    tags, rest = {}, []
    for word in words.split():
        if word.startswith(_TAG) and "=" in word:
            key, _, value = word.removeprefix(_TAG).partition("=")
            tags[key] = value
        else:
            rest.append(word)
    return SearchQuery(" ".join(rest), tags)


class Slice(NamedTuple):
    """One page of a list, and how many there are in all."""

    names: list[str]
    start: int
    total: int


def sorted_names(
    names: Iterable[str], sort: str, keys: Mapping[str, Callable[[str], Any]]
) -> list[str]:
    """Sort names by a column, `-column` in descending order.

    Equal values, and an unknown column, sort by name.
    """
    by_name = sorted(names)
    key = keys.get(sort.removeprefix("-"))
    if key is None:
        return by_name[::-1] if sort == "-name" else by_name
    return sorted(by_name, key=key, reverse=sort.startswith("-"))


def sort_keys(
    samples: Mapping[str, Sample],
    unmeasured: Sample,
    columns: Mapping[str, Callable[[Sample], Any]],
) -> dict[str, Callable[[str], Any]]:
    """Return the sort keys of names by what was measured of them; None sorts as zero."""

    def by(value: Callable[[Sample], Any]) -> Callable[[str], Any]:
        return lambda name: value(samples.get(name, unmeasured)) or 0

    return {column: by(value) for column, value in columns.items()}


def slice_of(names: Sequence[str], start: int) -> Slice:
    """Return the page that begins at `start`; the last one, if the list is shorter by now."""
    if start >= len(names):
        start = (max(0, len(names) - 1) // PAGE_ROWS) * PAGE_ROWS
    return Slice(list(names[start : start + PAGE_ROWS]), start, len(names))


def first_page(items: Sequence[Item], key: Callable[[Item], Any]) -> tuple[Sequence[Item], Any]:
    """Return the rows of a page, and the key of the last one if more follow.

    `items` has one more than a page shows if there are more.
    """
    rows = items[:PAGE_ROWS]
    return rows, key(rows[-1]) if len(items) > PAGE_ROWS else None
