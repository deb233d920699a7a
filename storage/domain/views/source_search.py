"""Search for the records that contributed to a row, which a worker does."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from storage.domain.replays.replay import OffsetRange
from storage.domain.streams.stream import Gap
from storage.domain.views.progress import ViewRevision


class RecordLocation(NamedTuple):
    """Shard and offset of a record."""

    shard: int
    offset: int


class SearchSpec(msgspec.Struct, frozen=True):
    """Specification of a search.

    `key`: the encoded key of a row of the revision. `ranges`: what is searched, in order. The search ends after `limit` records.
    """

    revision: ViewRevision
    key: bytes
    ranges: Sequence[OffsetRange]
    limit: int


class SearchResult(msgspec.Struct, frozen=True):
    """Records of a row in the order of shards and offsets.

    `next`: where the search ended, unless it is done. `gaps`: offsets that were to be searched and cannot be read, by shard.
    """

    records: Sequence[RecordLocation]
    gaps: Sequence[tuple[int, Gap]] = ()
    next: RecordLocation | None = None
