"""Replies to a request."""

import msgspec

from storage.domain import limits
from storage.domain.errors import MessageTooLarge
from storage.domain.log.record_batch import Headers, headers_size_bytes
from storage.domain.queues.message import Settlement
from storage.domain.requests.token import RequestId


class NewReply(msgspec.Struct, frozen=True, gc=False):
    """Reply to send. Raises MessageTooLarge."""

    body: bytes
    headers: Headers = ()
    content_type: str = ""

    def __post_init__(self) -> None:
        size_bytes = len(self.body) + headers_size_bytes(self.headers)
        if size_bytes > limits.REPLY_BYTES_MAX:
            raise MessageTooLarge(
                f"The reply has {size_bytes} bytes; at most {limits.REPLY_BYTES_MAX} are accepted.",
                bytes_max=limits.REPLY_BYTES_MAX,
            )


class ReplyingSettlement(Settlement, frozen=True, kw_only=True, gc=False):
    """Acknowledgement of a delivery that is a request, with the reply to it."""

    request: str
    reply: NewReply

    def request_in(self, namespace: str) -> RequestId:
        """Return the request. Raises ValidationFailed."""
        return RequestId(self.request, namespace)


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Accepted reply, and when it was accepted."""

    body: bytes
    headers: Headers
    content_type: str
    at_ms: int


class Replies(msgspec.Struct, frozen=True, gc=False):
    """Replies to a request, in the order of their acceptance.

    `is_complete`: it accepts no further ones, as it has all or its deadline has passed; the latter is `is_overdue`.
    """

    replies: tuple[Reply, ...]
    is_complete: bool
    is_overdue: bool

    @property
    def is_timed_out(self) -> bool:
        """True if the deadline passed without a reply."""
        return self.is_overdue and not self.replies
