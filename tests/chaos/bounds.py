"""Bounded growth: the last third of a series is at most the second plus a tolerance."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from statistics import mean

import msgspec

THIRDS = 3


class Tolerance(msgspec.Struct, frozen=True):
    """Allowed growth: this share of the second third, plus this slack."""

    share: float
    slack: float


MIB = 1024 * 1024
TOLERANCES = {
    "memory *": Tolerance(0.10, 16 * MIB),  # allocators keep what a burst needed
    "files *": Tolerance(0.10, 10),  # open sockets and files of a process
    "keys *": Tolerance(0.15, 30),
    "valkey memory": Tolerance(0.10, 4 * MIB),
    "rows *": Tolerance(0.15, 50),
    "p50 *": Tolerance(0.50, 0.005),  # on a shared machine
    "p99 *": Tolerance(1.00, 0.050),
}
"""Tolerances by series name. Thirds are means, so that oscillations do not matter."""


class Judged(msgspec.Struct, frozen=True):
    """The means of a series' thirds; `meant` is the reason why it may grow."""

    name: str
    thirds: tuple[float, ...]
    grows: bool
    meant: str = ""

    @property
    def is_bounded(self) -> bool:
        """Return whether it is bounded, or may grow."""
        return not self.grows or bool(self.meant)

    def line(self) -> str:
        """A line of the report."""
        word = f"grows, as it is to: {self.meant}" if self.meant else "GROWS"
        numbers = "".join(f"{_shown(self.name, third):>12}" for third in self.thirds)
        return f"{self.name:<44}{numbers}  {word if self.grows else 'bounded'}"


def judge(name: str, samples: Sequence[float], meant: Mapping[str, str] | None = None) -> Judged:
    """Compare a series with its tolerance; `meant` maps series that may grow to reasons."""
    size = len(samples) // THIRDS
    if size == 0:
        return Judged(name, tuple(samples), grows=False)
    parts = (samples[:size], samples[size : 2 * size], samples[2 * size :])
    first, second, last = (mean(part) for part in parts)
    tolerance = next(
        each_tolerance for like, each_tolerance in TOLERANCES.items() if fnmatchcase(name, like)
    )
    grows = last > second * (1 + tolerance.share) + tolerance.slack
    reason = next((why for like, why in (meant or {}).items() if fnmatchcase(name, like)), "")
    return Judged(name, (first, second, last), grows, reason)


def _shown(name: str, number: float) -> str:
    if name.startswith(("memory", "valkey memory")):
        return f"{number / MIB:.1f} MiB"
    if name.startswith("p"):
        return f"{number * 1000:.1f} ms"
    return f"{number:.0f}"
