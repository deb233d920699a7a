"""List tokens: they name the last item returned, and are valid for five minutes."""

from typing import Any

from api.aws.kinesis.call_helpers import now_ms, secret
from api.aws.kinesis.errors import EXPIRED_NEXT_TOKEN, invalid, refuse
from api.aws.kinesis.tokens import LIFETIME_MS, ListToken, NotOurs, seal, unseal
from api.aws.protocol.service import AwsCall
from storage.domain.streams.stream import Stream


async def list_token(call: AwsCall[Any], text: str, about: str) -> ListToken:
    """Decode a token of a list `about` something. Raises AwsError."""
    try:
        token = unseal(text, ListToken, await secret(call))
    except NotOurs:
        raise invalid("Invalid NextToken.") from None
    if token.about != about or token.namespace != call.principal.namespace:
        raise invalid("Invalid NextToken.")
    if now_ms(call) > token.issued_ms + LIFETIME_MS:
        refuse(EXPIRED_NEXT_TOKEN, "The NextToken has expired.")
    return token


async def next_token(
    call: AwsCall[Any], about: str, after: str, stream: Stream | None = None, rest: Any = None
) -> str:
    """Return a token for the rest of a list after `after`."""
    name, stream_id = ("", "") if stream is None else (stream.name.name, stream.stream_id)
    namespace = call.principal.namespace
    token = ListToken(about, namespace, name, stream_id, after, rest, now_ms(call))
    return seal(token, await secret(call))
