"""Named places where a failure test lets things go wrong: `fault("archive.before_commit")`.

    <name>            the process ends there at once, as by kill -9
    <name>:kill       the same
    <name>:raise      FaultInjected is raised
    <name>:sleep_250  milliseconds pass

A process that is not told of a fault does nothing at any of them. Which is armed is told once, at the start.
"""

import os
import signal
import time

from storage.domain.limits import SECOND_MS

_SLEEP = "sleep_"
_armed: tuple[str, str] | None = None


class FaultInjected(Exception):
    """A test asked for this."""


def arm(told: str) -> None:
    """Arm one fault, or none if `told` is empty. Raises ValueError for one that does not read as above."""
    global _armed
    name, _, what = told.partition(":")
    if what not in ("", "kill", "raise") and not what.removeprefix(_SLEEP).isdecimal():
        raise ValueError(f"a fault is name[:kill|:raise|:sleep_ms], not {told!r}")
    _armed = (name, what or "kill") if name else None


def fault(name: str) -> None:
    """The named place; nothing happens, but for the one that is armed."""
    if _armed is not None and _armed[0] == name:
        _strike(name, _armed[1])


def _strike(name: str, what: str) -> None:
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise":
        raise FaultInjected(name)
    time.sleep(int(what.removeprefix(_SLEEP)) / SECOND_MS)
