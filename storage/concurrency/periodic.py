"""Periodic work of a process: one loop, with one kind of log entry for what fails."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, Never

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
    idle_s: float = 0.0,
    chance: Callable[[], float] = random.random,  # noqa: S311
) -> Never:
    """Run `work` at once and then after each interval, until cancelled.

    It runs earlier when `wake` is set, and `retry_s` after a failure. While it returns nothing or 0 the interval doubles, up to
    `idle_s`. With `delay_first` it runs after the first interval. A failure is logged, an outage once, and ends neither this
    loop nor others.
    """
    pause_s = interval_s
    if delay_first:
        await _pause(pause_s, wake, chance)
    attempt = _Attempt(succeeded=True, result=0)
    while True:
        if wake is not None:
            wake.clear()
        attempt = await _attempt(work, name, is_first=attempt.succeeded)
        if retry_s is not None and not attempt.succeeded:
            await _pause(retry_s, None, chance)
            continue
        pause_s = interval_s if attempt.result else max(interval_s, min(2 * pause_s, idle_s))
        await _pause(pause_s, wake, chance)


class _Attempt(NamedTuple):
    """The end of a run, and what the work returned."""

    succeeded: bool
    result: object


async def _attempt(work: Callable[[], Awaitable[object]], name: str, *, is_first: bool) -> _Attempt:
    try:
        return _Attempt(True, await work())
    except MillstreamError as error:
        if is_first:
            facts = {"work": name, "reason": error.detail}
            logger.warning("periodic_work_deferred", extra=facts)
    except Exception:
        logger.exception("periodic_work_failed", extra={"work": name})
    return _Attempt(False, 0)


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
