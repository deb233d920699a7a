"""Times of the rounds of pullers, and their pauses after failures."""

import asyncio
from typing import NamedTuple

from storage.domain import limits


class MirrorTimes(NamedTuple):
    """Times of the rounds of pullers: see the limits of the same names."""

    reload_ms: int = limits.MIRROR_RELOAD_MS
    discovery_ms: int = limits.MIRROR_DISCOVERY_MS
    wait_ms: int = limits.MIRROR_WAIT_MS
    report_ms: int = limits.MIRROR_REPORT_MS
    backoff_ms: int = limits.MIRROR_BACKOFF_MS
    groups_ms: int = limits.MIRROR_GROUPS_MS


class PullBackoff:
    """Pauses after failures, each twice as long as the one before."""

    def __init__(self, first_ms: int) -> None:
        self._pause_ms = first_ms

    async def pause(self) -> None:
        """Wait."""
        await asyncio.sleep(self._pause_ms / limits.SECOND_MS)
        self._pause_ms = min(2 * self._pause_ms, limits.MIRROR_BACKOFF_MS_MAX)
