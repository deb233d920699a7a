"""Order of alerts by harm.

    rank = severity of the kind, then harm = waiting * (1 + growth per minute)

`waiting`: messages or records concerned; `growth`: by how much that increases, never below zero. So of two alerts of the same
severity the one with more waiting, or with faster growth, is first.
"""

from typing import NamedTuple

from storage.domain.alerts.kinds import AlertKind, AlertSubject

_ORDER = {kind: number for number, kind in enumerate(AlertKind)}


class Finding(NamedTuple):
    """Result of a rule: an alert's subject, and how much waits there.

    `growth`: of what waits, per minute.
    """

    subject: AlertSubject
    waiting: int = 0
    growth: float = 0.0

    @property
    def harm(self) -> float:
        """Harm among alerts of the same severity."""
        return self.waiting * (1 + max(0.0, self.growth))

    @property
    def rank(self) -> tuple[float, float, int, str]:
        """Position among all alerts: the lowest is first."""
        kind, name = self.subject
        return (kind.severity, -self.harm, _ORDER[kind], name)
