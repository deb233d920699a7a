"""Errors of the hot store, Postgres and the replica set."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class BacklogFull(MillstreamError):
    """The hot store is nearly full; writes are rejected, reads and settlements continue."""

    code = ErrorCode.BACKLOG_FULL


class StorageUnavailable(MillstreamError):
    """The store is unreachable or rejects writes; nothing happened."""

    code = ErrorCode.STORAGE_UNAVAILABLE


class StorageFull(MillstreamError):
    """The store is out of memory; nothing happened."""

    code = ErrorCode.STORAGE_FULL


class StorageBusy(MillstreamError):
    """Too many calls are waiting for the store; nothing happened."""

    code = ErrorCode.STORAGE_BUSY


class NotEnoughReplicas(StorageUnavailable):
    """Fewer stores than `min_insync_replicas` are in sync; nothing happened."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class ReplicaSetRefused(MillstreamError):
    """The replica set cannot be changed in this way now; nothing happened."""

    code = ErrorCode.REPLICA_SET_REFUSED


class OutcomeUnknown(MillstreamError):
    """The store timed out; the call may have taken effect."""

    code = ErrorCode.STORAGE_TIMEOUT
