"""Handling of offsets that are no longer available, which is never silent."""

import logging
from collections.abc import Callable
from typing import Any

from millstream_client.records import Gap, ShardRead, StreamRead

log = logging.getLogger("millstream_client")

OnGap = Callable[[Gap], Any]


def warn_of(gap: Gap) -> None:
    """Log a warning, the default handler of gaps."""
    log.warning(
        "offsets %d to %d of shard %d are gone: %s", gap.first, gap.next - 1, gap.shard, gap.reason
    )


def gaps_of(page: StreamRead | ShardRead) -> list[Gap]:
    """Return the gaps of a page."""
    if isinstance(page, StreamRead):
        return page.gaps
    return [] if page.gap is None else [page.gap]
