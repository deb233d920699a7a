"""Status of a script call as a whole, decided before it processes its arguments.

The numbers are those of `scripts/lib/status.lua`.
"""

from storage.domain.errors import FenceMismatch
from storage.hot_store.errors import LogNotReady, LogProblem
from storage.redis.transport.client import Reply

_FENCED = 6


def refusal_in(reply: Reply) -> LogNotReady | FenceMismatch | None:
    """Return the refusal in a reply, or None when the script did its work."""
    if reply[0] == 0:
        return None
    if reply[0] == _FENCED:
        return FenceMismatch("The queue is read-only: it is a copy, or it was moved.")
    return LogNotReady(LogProblem(reply[0]), reply[1] if len(reply) > 1 else -1)


def checked(reply: Reply) -> Reply:
    """Return the reply of a script that did its work.

    Raises LogNotReady, and FenceMismatch for a queue that only takes copies.
    """
    refusal = refusal_in(reply)
    if refusal is not None:
        raise refusal
    return reply
