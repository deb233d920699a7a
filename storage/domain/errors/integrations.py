"""Errors of webhooks, sources and mirrors."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class WebhookNotFound(MillstreamError):
    """The webhook does not exist."""

    code = ErrorCode.WEBHOOK_NOT_FOUND


class DeliveryNotFound(MillstreamError):
    """The delivery is not in the webhook's log."""

    code = ErrorCode.DELIVERY_NOT_FOUND


class PayloadGone(MillstreamError):
    """The payload is no longer in its queue or stream and was too large for the log."""

    code = ErrorCode.PAYLOAD_GONE


class WebhookBusy(MillstreamError):
    """Too many concurrent manual sends in this process."""

    code = ErrorCode.WEBHOOK_BUSY


class MirrorNotFound(MillstreamError):
    """The mirror does not exist."""

    code = ErrorCode.MIRROR_NOT_FOUND


class SourceNotFound(MillstreamError):
    """The source does not exist, or the URL's token is not valid."""

    code = ErrorCode.SOURCE_NOT_FOUND


class SourcePaused(MillstreamError):
    """The source is paused; send the event again later."""

    code = ErrorCode.SOURCE_PAUSED


class SignatureRejected(MillstreamError):
    """The request is not signed by the provider, or is too old."""

    code = ErrorCode.SIGNATURE_REJECTED


class OutboxFull(MillstreamError):
    """Too many events of this source wait for their target."""

    code = ErrorCode.OUTBOX_FULL
