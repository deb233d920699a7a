"""Reservations of one log, which tests use instead of batches."""

from storage.domain.names import LogId
from storage.postgres.repositories.offset_reservations import (
    CeilingRequest,
    OpenRequest,
    Reservation,
    Reservations,
)


async def open_log(
    reservations: Reservations,
    log_id: LogId,
    store_epoch: int,
    hot_next: int | None,
    reserve: int,
    lost: bool = True,
) -> Reservation | None:
    """Reserve offsets for one log. Raises EpochBehind."""
    request = OpenRequest(log_id, store_epoch, hot_next, reserve, lost)
    [result] = await reservations.open_logs([request])
    if isinstance(result, Exception):
        raise result
    return result


async def raise_ceiling(
    reservations: Reservations, log_id: LogId, store_epoch: int, at_least: int
) -> int | None:
    """Reserve more offsets for one log."""
    [ceiling] = await reservations.raise_ceilings([CeilingRequest(log_id, store_epoch, at_least)])
    return ceiling


async def spans(reservations: Reservations, log_id: LogId) -> list[tuple[int, int]]:
    """Return the log's holes without their reasons."""
    return [(hole.first, hole.next) for hole in await reservations.holes(log_id)]
