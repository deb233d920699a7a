"""Formats in which a route's copies carry a message.

body                 the body as it is, with its headers beside it
envelope             JSON with everything that is known of the message; the trace stays in headers
cloudevents          CloudEvents 1.0 in JSON, with the headers beside it
cloudevents_binary   the body as it is; CloudEvents attributes in `ce-` headers beside the others
"""

import base64
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import quote

import msgspec

from storage.domain.log.json_body import NOTHING, json_of
from storage.domain.log.json_content import JSON, body_members, header_members
from storage.domain.names import TopicName
from storage.domain.topics.routed_message import CopyContent, RoutedMessage
from storage.domain.trace_context import OF_TRACES

CLOUDEVENTS_JSON = "application/cloudevents+json"
_TYPE = "millstream.message"


class CopyFormat(StrEnum):
    """Format of a route's copies."""

    BODY = "body"
    ENVELOPE = "envelope"
    CLOUDEVENTS = "cloudevents"
    CLOUDEVENTS_BINARY = "cloudevents_binary"

    def apply(self, message: RoutedMessage, content: CopyContent) -> CopyContent:
        """Return the content of a copy in this format."""
        return _FORMATS[self](message, content)


def _body(_: RoutedMessage, content: CopyContent) -> CopyContent:
    return content


def _envelope(message: RoutedMessage, content: CopyContent) -> CopyContent:
    members = {
        "id": str(message.message_id),
        "topic": message.route.topic.name,
        "route": message.route.route,
        "subject": content.subject,
        "key": message.key,
        "published_at": message.published_at,
        "content_type": content.content_type,
        **header_members(content.headers),
        **body_members(content.body, content.content_type),
    }
    traces = tuple(header for header in content.headers if header[0] in OF_TRACES)
    return content._replace(body=msgspec.json.encode(members), headers=traces, content_type=JSON)


def _cloudevents(message: RoutedMessage, content: CopyContent) -> CopyContent:
    event = {**_attributes(message, content), **_data(content)}
    body = msgspec.json.encode(event)
    return content._replace(body=body, content_type=CLOUDEVENTS_JSON)


def _cloudevents_binary(message: RoutedMessage, content: CopyContent) -> CopyContent:
    attributes = {f"ce-{name}": value for name, value in _attributes(message, content).items()}
    others = tuple(header for header in content.headers if header[0] not in attributes)
    return content._replace(
        headers=(*others, *((name, "", value.encode()) for name, value in attributes.items()))
    )


def _attributes(message: RoutedMessage, content: CopyContent) -> dict[str, str]:
    attributes = {
        "specversion": "1.0",
        "id": str(message.message_id),
        "source": _source(message.route.topic),
        "type": content.subject or _TYPE,
        "time": message.published_at,
    }
    return attributes | ({"subject": content.subject} if content.subject else {})


def _source(topic: TopicName) -> str:
    if topic.is_of_stream:
        return f"/streams/{quote(topic.stream.name, safe='')}"
    return f"/topics/{quote(topic.name, safe='')}"


def _data(content: CopyContent) -> Mapping[str, Any]:
    """Return the data as JSON, text or base64, with a content type that says so.

    A reader takes data without a content type for JSON, so a body without one gets that of a text or of bytes.
    """
    declared, body = content.content_type, content.body
    try:
        if not _is_json(declared):
            return {"datacontenttype": declared or "text/plain", "data": body.decode()}
        if json_of(body) is not NOTHING:
            return {"datacontenttype": declared, "data": msgspec.Raw(body)}
    except UnicodeDecodeError:
        declared = declared or "application/octet-stream"
    return {"datacontenttype": declared, "data_base64": base64.b64encode(body).decode()}


def _is_json(content_type: str) -> bool:
    subtype = content_type.partition(";")[0].strip().lower().partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


_FORMATS: Mapping[CopyFormat, Callable[[RoutedMessage, CopyContent], CopyContent]] = {
    CopyFormat.BODY: _body,
    CopyFormat.ENVELOPE: _envelope,
    CopyFormat.CLOUDEVENTS: _cloudevents,
    CopyFormat.CLOUDEVENTS_BINARY: _cloudevents_binary,
}
