"""Errors of streams, their shards, offsets and writers."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class StreamNotFound(MillstreamError):
    """The stream does not exist."""

    code = ErrorCode.STREAM_NOT_FOUND


class StreamRecreated(StreamNotFound):
    """The position belongs to a deleted stream; another stream has its name now."""

    code = ErrorCode.STREAM_RECREATED


class StreamReadOnly(MillstreamError):
    """The stream is a view of a queue, or a topic; send to the queue, publish to the topic."""

    code = ErrorCode.STREAM_READ_ONLY


class ShardNotFound(MillstreamError):
    """The shard does not exist in this stream."""

    code = ErrorCode.SHARD_NOT_FOUND


class RecordNotFound(MillstreamError):
    """The stream has no record with this key, or it has expired."""

    code = ErrorCode.RECORD_NOT_FOUND


class StreamBusy(MillstreamError):
    """The stream is being resharded; only one reshard runs at a time."""

    code = ErrorCode.STREAM_BUSY


class OffsetExpired(MillstreamError):
    """The offset is older than the oldest record of the log."""

    code = ErrorCode.OFFSET_EXPIRED


class OffsetOutOfRange(MillstreamError):
    """The offset is past the end of the log."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class OffsetMismatch(MillstreamError):
    """The next offset of the shard is not the expected one."""

    code = ErrorCode.OFFSET_MISMATCH


class FenceMismatch(MillstreamError):
    """The shard is fenced by another writer's token, or the queue by a mirror.

    `token`: the present one, where the store reported it.
    """

    code = ErrorCode.FENCE_MISMATCH

    def __init__(self, detail: str | None = None, *, token: str = "") -> None:
        super().__init__(detail)
        self.token = token


class ShardClosed(MillstreamError):
    """The shard is closed; append to its children."""

    code = ErrorCode.SHARD_CLOSED


class ProducerFenced(MillstreamError):
    """A newer epoch of this producer has written to the shard."""

    code = ErrorCode.PRODUCER_FENCED


class SequenceOutOfOrder(MillstreamError):
    """The producer's sequence does not follow its last one."""

    code = ErrorCode.SEQUENCE_OUT_OF_ORDER


class DuplicateForgotten(MillstreamError):
    """The batch was already appended, too long ago for its offsets to be known."""

    code = ErrorCode.DUPLICATE_FORGOTTEN


class TooManyProducers(MillstreamError):
    """Too many idempotent writers, such as replays, send to this target at the same time."""

    code = ErrorCode.TOO_MANY_PRODUCERS
