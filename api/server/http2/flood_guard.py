"""Token bucket for what a client may do to a connection at no cost to itself."""


class FloodGuard:
    """Allowance of `burst` events at once, and of `per_second` afterwards."""

    __slots__ = ("_at_s", "_burst", "_left", "_per_second")

    def __init__(self, burst: int, per_second: int, now_s: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst)
        self._at_s = now_s

    def take(self, now_s: float) -> bool:
        """Count an event, and return whether it is within the allowance."""
        grown = self._left + (now_s - self._at_s) * self._per_second
        self._left = min(float(self._burst), grown) - 1
        self._at_s = now_s
        return self._left >= 0
