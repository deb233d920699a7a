"""Sources of a row: the range of the records of each shard that contributed to it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec


class SourceMode(StrEnum):
    """Storage of the sources of rows. range: the first and the last offset of each shard."""

    NONE = "none"
    RANGE = "range"


class SourceRange(NamedTuple):
    """Range of the records of a shard that contributed to a row, and their number.

    A record counts as often as it contributes: once for each row of a table that it is joined with.
    """

    first: int
    last: int
    records: int


Sources = Mapping[int, SourceRange]
"""Sources by shard."""

_decoder = msgspec.json.Decoder(dict[int, SourceRange], strict=False)


def merge_sources(every: Iterable[Sources]) -> dict[int, SourceRange]:
    """Return the sources of a row that has those of all its parts."""
    merged: dict[int, SourceRange] = {}
    for sources in every:
        for shard, added in sources.items():
            present = merged.get(shard, added._replace(records=0))
            merged[shard] = SourceRange(
                min(added.first, present.first),
                max(added.last, present.last),
                added.records + present.records,
            )
    return merged


def encode_sources(sources: Sources) -> str:
    """Return sources as they are stored."""
    return msgspec.json.encode(dict(sorted(sources.items()))).decode()


def decode_sources(stored: str | None) -> dict[int, SourceRange]:
    """Return stored sources; none for a row without them."""
    return {} if stored is None else _decoder.decode(stored)
