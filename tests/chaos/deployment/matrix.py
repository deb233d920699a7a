"""Failure matrix of docs/explanation/failure-modes.md: what it allows while a host fails."""

from collections.abc import Collection, Sequence

import msgspec

from tests.chaos.checking.findings import Finding, Operations
from tests.chaos.deployment.releases import Release
from tests.chaos.deployment.stores import PRIMARY
from tests.chaos.history import Kind

UNAVAILABLE = 503
CALLS = (Kind.SEND, Kind.RECEIVE, Kind.ACK, Kind.NACK)
"""Calls that need nothing but the primary store; others may also wait too long for Postgres on a busy machine."""
API_STAYS = ("cut", "pause")
"""Faults after which an API process answers what it was asked before."""


class Period(msgspec.Struct, frozen=True):
    """From the begin of a fault until everything works again; times are those of the history."""

    fault: str
    role: str
    began: float
    ended: float
    recovered_s: float | None

    def allows_unavailable(self) -> bool:
        """Return whether calls may get 503 meanwhile."""
        match self.role.split():
            case [role, "store"]:
                return role == PRIMARY
            case [_, "postgres"]:
                return True  # a standby that confirms no commit is an outage too
            case ["api"]:
                return self.fault.partition(" ")[0] in API_STAYS
            case _:
                return False


def unavailable_by_matrix(history: Operations, periods: Sequence[Period]) -> Finding:
    """Calls on queues get 503 only while a host fails on which they depend."""
    calm = [period for period in periods if not period.allows_unavailable()]
    wrong = [
        f"{period.fault} ({period.role}): {operation.client} was answered {operation.status}"
        f" {operation.code} to {operation.kind.value} of {operation.log} at {operation.ended:.3f}"
        for operation in history
        if operation.kind in CALLS and operation.status == UNAVAILABLE
        for period in calm
        if period.began <= operation.ended <= period.ended
    ]
    return Finding("503 as in the failure matrix", len(calm), tuple(wrong))


def works_again(periods: Collection[Period]) -> Finding:
    """Everything works again within the bound after each fault."""
    wrong = [f"{period.fault} ({period.role})" for period in periods if period.recovered_s is None]
    return Finding("works again after each fault", len(periods), tuple(wrong))


def stays_up(ended: Sequence[tuple[str, Release]], last: Release | None) -> Finding:
    """No process ends by itself. One of the last release may: its faults cannot be fixed any more."""
    wrong = [f"{name} of {release.name}" for name, release in ended if release != last]
    return Finding("no process ends by itself", 1, tuple(wrong))
