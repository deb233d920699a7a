# Generated from aio/definitions.py by `make sdk`; changes are lost.
"""Creation that never overwrites, shared by queues, streams, groups, webhooks and sources."""

from collections.abc import Callable
from typing import Any, TypeVar

from millstream_client.calls import Call
from millstream_client.errors import AlreadyExists, OutcomeUnknown
from millstream_client.sync.transport import Transport

T = TypeVar("T")


def create(
    transport: Transport,
    call: Call[T],
    read: Callable[[dict[str, Any]], T],
    *,
    only_new: bool = False,
) -> T:
    """Send a PUT that only creates; return an existing object if its settings are the same.

    `read` decodes the existing object, which an attempt without a response may have created. Raises AlreadyExists if
    settings differ, or, with `only_new`, in any case.
    """
    try:
        return transport.call(call)
    except (AlreadyExists, OutcomeUnknown) as error:
        existing = error.__cause__ if isinstance(error, OutcomeUnknown) else error
        if not isinstance(existing, AlreadyExists) or existing.changes or only_new:
            raise
        return read({**existing.current, "created": False, "dry_run": False, "changes": []})
