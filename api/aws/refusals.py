"""Errors of the HTTP server, in the protocol of the AWS client that sent the request."""

import re
from typing import NamedTuple

import msgspec

from api.aws.protocol.codecs.xml import error_xml
from api.aws.protocol.errors import from_refusal
from api.aws.protocol.json_query_protocols import XML
from api.aws.protocol.request_id import HEADER, new_request_id
from api.aws.sqs.service import SQS
from api.errors import HttpError
from api.types import RequestHeaders

_TARGET = b"x-amz-target"
_JSON = "application/x-amz-json-1.1"
_QUERY_URL = re.compile(rb"/(?:[0-9]{12}(?:[/?]|\Z)|\?(?:.*&)?Action=)")


class AwsRefusal(NamedTuple):
    """A refusal as the client can read it."""

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]


def refusal_of(error: HttpError, url: bytes, headers: RequestHeaders) -> AwsRefusal | None:
    """Encode a refusal for an AWS client; None for any other client.

    `url` and `headers` may be incomplete: what has arrived of them.
    """
    if _TARGET not in headers and not _QUERY_URL.match(url):
        return None
    refused, request_id = from_refusal(error), new_request_id()
    fault = refused.fault
    if _TARGET in headers:
        body = msgspec.json.encode({"__type": fault.shape, "message": refused.message})
        return AwsRefusal(fault.status, _JSON, body, ((HEADER, request_id), fault.type_header))
    body = error_xml(refused, request_id.decode(), SQS.namespace)
    return AwsRefusal(fault.status, XML, body, ((HEADER, request_id),))
