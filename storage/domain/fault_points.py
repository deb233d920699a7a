"""Fault injection points for failure tests: `fault("archive.before_commit")`.

    <name>            the process ends there immediately, as by kill -9
    <name>:kill       the same
    <name>:raise      FaultInjected is raised
    <name>:sleep_250  milliseconds pass

Without an armed fault nothing happens at any of them. One fault is armed, once, at the start of the process.
"""

import os
import signal
import time

from storage.domain.limits import SECOND_MS

_SLEEP = "sleep_"
_armed: tuple[str, str] | None = None


class FaultInjected(Exception):
    """Error injected by a test."""


def arm(spec: str) -> None:
    """Arm one fault, or none if `spec` is empty.

    Raises ValueError unless `spec` has one of the forms above.
    """
    global _armed
    name, _, what = spec.partition(":")
    if what not in ("", "kill", "raise") and not what.removeprefix(_SLEEP).isdecimal():
        raise ValueError(f"a fault must be name[:kill|:raise|:sleep_ms], not {spec!r}")
    _armed = (name, what or "kill") if name else None


def fault(name: str) -> None:
    """Mark a fault injection point; nothing happens unless it is the armed one."""
    if _armed is not None and _armed[0] == name:
        _strike(name, _armed[1])


def _strike(name: str, what: str) -> None:
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "raise":
        raise FaultInjected(name)
    time.sleep(int(what.removeprefix(_SLEEP)) / SECOND_MS)
