"""Reply addresses: queue URLs to which SendMessage sends the reply to a request.

    ReceiveMessage ─▶ attribute Millstream.ReplyTo = <token> ─▶ SendMessage to <address>/<account>/reply:<token>

No other operation accepts such a URL: to them, the queue does not exist.
"""

from api.aws.protocol.service import AwsCall
from api.aws.sqs.errors import invalid, no_such_queue
from api.aws.sqs.messages.digests import attributes_digest, body_digest
from api.aws.sqs.messages.message import text_body
from api.aws.sqs.messages.message_attributes import attributes_to_headers
from api.aws.sqs.queues.urls import account_of_url
from api.aws.sqs.shapes import SendMessage, SendMessageResult
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed
from storage.domain.requests.reply import NewReply
from storage.domain.requests.token import RequestId

PREFIX = "reply:"

_INVOCATION = b"amz-sdk-invocation-id"
"""Header with which AWS's SDKs mark the attempts of one call."""


def is_reply_address(url_or_name: str) -> bool:
    """Return whether a queue URL, or the name in it, is the address of a reply."""
    return PREFIX in url_or_name and url_or_name.removesuffix("/").rpartition("/")[2].startswith(
        PREFIX
    )


def request_of(name: str, namespace: str) -> RequestId:
    """Return the request that a name addresses. Raises AwsError: QueueDoesNotExist."""
    try:
        return RequestId(name.removesuffix("/").rpartition(PREFIX)[2], namespace)
    except ValidationFailed:
        raise no_such_queue() from None


async def send_reply(call: AwsCall[SendMessage], url: str) -> SendMessageResult:
    """Reply to the request that a URL addresses.

    A repeat with the same MessageDeduplicationId, or a further attempt of one call of an SDK, adds nothing. Raises AwsError,
    Forbidden, ReplyTaken, ReplyTooLate.
    """
    request = call.request
    if call.account and account_of_url(url) not in ("", call.account):
        raise no_such_queue()
    call.storage.authorizer.authorise_list(call.principal, Action.QUEUE_RECEIVE)
    _check(request)
    text = text_body(request)
    headers = attributes_to_headers(request.message_attributes)
    address = request_of(url, call.principal.namespace)
    key = request.message_deduplication_id or call.headers.get(_INVOCATION, b"").decode("latin-1")
    await call.storage.requests.reply(address, NewReply(text, headers), key=key)
    return SendMessageResult(address.name, body_digest(text), attributes_digest(headers))


def _check(request: SendMessage) -> None:
    """Raise AwsError for parameters that a reply does not have."""
    if request.delay_seconds or request.message_group_id is not None:
        raise invalid("A reply has neither DelaySeconds nor MessageGroupId.")
