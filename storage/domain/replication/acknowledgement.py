"""Acknowledgement of writes: by enough stores of a replica set, or by its primary."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_by_primary: ContextVar[bool] = ContextVar("acknowledged_by_primary", default=False)


def is_acknowledged_by_primary() -> bool:
    """Return whether writes of this call are acknowledged once they are on the primary's disk."""
    return _by_primary.get()


@contextmanager
def acknowledged_by_primary() -> Iterator[None]:
    """Acknowledge the writes of the block once they are on the primary's disk.

    They are answered sooner, and a fail-over may lose them.
    """
    with _acknowledged(by_primary=True):
        yield


@contextmanager
def acknowledged_by_replicas() -> Iterator[None]:
    """Acknowledge the writes of the block by enough stores, whatever its caller asked for."""
    with _acknowledged(by_primary=False):
        yield


@contextmanager
def _acknowledged(*, by_primary: bool) -> Iterator[None]:
    token = _by_primary.set(by_primary)
    try:
        yield
    finally:
        _by_primary.reset(token)
