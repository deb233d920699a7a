"""Status of a script call as a whole, decided before it processes its arguments.

The numbers are those of `scripts/lib/status.lua`.
"""

from enum import IntEnum

from storage.redis.transport.client import Reply


class ScriptStatus(IntEnum):
    """Reason why nothing was done. Each has its remedy in `storage.log.provisioner`."""

    UNKNOWN_LOG = 1
    DELETED = 2
    CALLER_BEHIND = 3
    LOG_BEHIND = 4
    AT_CEILING = 5


class LogNotReady(Exception):
    """Refusal: the log must be created, advanced or given offsets first; nothing happened.

    `fact`: the log's next offset (LOG_BEHIND, AT_CEILING) or its store epoch (CALLER_BEHIND), or -1.
    """

    def __init__(self, refusal: ScriptStatus, fact: int = -1) -> None:
        super().__init__(refusal.name)
        self.refusal = refusal
        self.fact = fact


def refusal_in(reply: Reply) -> LogNotReady | None:
    """Return the refusal in a reply, or None when the script did its work."""
    if reply[0] == 0:
        return None
    return LogNotReady(ScriptStatus(reply[0]), reply[1] if len(reply) > 1 else -1)


def checked(reply: Reply) -> Reply:
    """Return the reply of a script that did its work. Raises LogNotReady."""
    refusal = refusal_in(reply)
    if refusal is not None:
        raise refusal
    return reply
