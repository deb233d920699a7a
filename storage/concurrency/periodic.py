"""Periodic work of a process: one loop, with one kind of log entry for what fails."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Never

from storage.domain.errors import MillstreamError

logger = logging.getLogger(__name__)

JITTER = 0.1
"""Share of the interval by which a pause may be shorter, so that processes do not act in step."""


async def periodic(
    interval_s: float,
    work: Callable[[], Awaitable[object]],
    name: str,
    *,
    wake: asyncio.Event | None = None,
    delay_first: bool = False,
    retry_s: float | None = None,
    chance: Callable[[], float] = random.random,  # noqa: S311
) -> Never:
    """Run `work` at once and then after each interval, until cancelled.

    It runs earlier when `wake` is set, and `retry_s` after a failure. With `delay_first` it runs after the first interval. A
    failure is logged, an outage once, and ends neither this loop nor others.
    """
    if delay_first:
        await _pause(interval_s, wake, chance)
    succeeded = True
    while True:
        if wake is not None:
            wake.clear()
        succeeded = await _attempt(work, name, is_first=succeeded)
        if succeeded or retry_s is None:
            await _pause(interval_s, wake, chance)
        else:
            await _pause(retry_s, None, chance)


async def _attempt(work: Callable[[], Awaitable[object]], name: str, *, is_first: bool) -> bool:
    """Run the work once; return whether it succeeded."""
    try:
        await work()
    except MillstreamError as error:
        if is_first:
            facts = {"work": name, "reason": error.detail}
            logger.warning("periodic_work_deferred", extra=facts)
    except Exception:
        logger.exception("periodic_work_failed", extra={"work": name})
    else:
        return True
    return False


async def _pause(
    interval_s: float, wake: asyncio.Event | None, chance: Callable[[], float]
) -> None:
    pause_s = interval_s * (1 - JITTER * chance())
    if wake is None:
        await asyncio.sleep(pause_s)
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(pause_s):
            await wake.wait()
