"""Periodic work of a process: one loop, with one kind of log entry for what fails."""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, Never

from storage.domain.errors import MillstreamError

logger = logging.getLogger(__name__)

JITTER = 0.1
"""Share of the interval by which a pause may be shorter."""


async def periodic(
    interval_s: float,
    work: Callable[[], Awaitable[object]],
    name: str,
    *,
    wake: asyncio.Event | None = None,
    delay_first: bool = False,
    retry_s: float | None = None,
    idle_s: float = 0.0,
) -> Never:
    """Run `work` at once and then after each interval, until cancelled.

    It runs earlier when `wake` is set, and `retry_s` after a failure. While it returns nothing or 0 the interval doubles, up to
    `idle_s`. With `delay_first` it runs after the first interval. A failure is logged, an outage once, and ends neither this
    loop nor others.
    """
    pause_s = interval_s
    if delay_first:
        await _pause(pause_s, wake)
    attempt = _Attempt(succeeded=True, result=0)
    while True:
        if wake is not None:
            wake.clear()
        attempt = await _attempt(work, name, is_first=attempt.succeeded)
        if retry_s is not None and not attempt.succeeded:
            await _pause(retry_s, None)
            continue
        pause_s = interval_s if attempt.result else max(interval_s, min(2 * pause_s, idle_s))
        await _pause(pause_s, wake)


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


def pause_seconds(
    interval_s: float,
    now_s: float,
    chance: Callable[[], float] = random.random,  # noqa: S311
) -> float:
    """Return how long to pause for an interval from a time of the monotonic clock.

    A pause ends at a full second if one lies in the last tenth of the interval, so that an idle machine wakes once for the work
    of all loops and processes. Otherwise it is shortened at random by up to a tenth.
    """
    full_s = math.floor(now_s + interval_s)
    if full_s >= now_s + interval_s * (1 - JITTER):
        return full_s - now_s
    return interval_s * (1 - JITTER * chance())


async def _pause(interval_s: float, wake: asyncio.Event | None) -> None:
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # a library turned it into an error of its own
        raise asyncio.CancelledError
    pause_s = pause_seconds(interval_s, asyncio.get_running_loop().time())
    if wake is None:
        await asyncio.sleep(pause_s)
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(pause_s):
            await wake.wait()
