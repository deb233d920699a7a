"""Fields that schemas of topics and of routes have in common, and messages to be examined."""

from typing import Annotated, Any

import msgspec
from pydantic import Field

from api.native.fields import body_from_json, headers_from_json
from api.native.records import with_content_type
from api.rest.schema_base import Config, Seconds
from storage.domain.filters.documents import Document, meta_of
from storage.domain.filters.subjects import check_subject
from storage.domain.names import TopicName

LagMessages = Annotated[
    int, Field(description="Messages that routers have not examined yet, whether routes take them.")
]
LagSeconds = Annotated[Seconds, Field(description="Age of the oldest of these messages.")]

MatchField = Annotated[
    Any,
    Field(
        description="A match, or a list of them, of which any takes a message. A match is an object with `subject`, `filter` and "
        "`where`; all that are given must hold. null: every message.",
        examples=[{"subject": "order.*"}],
    ),
]


RouteMatchField = Annotated[
    Any,
    Field(
        description="A match, or a list of them, of which any takes a message. A match is an object with `subject`, `filter` and "
        "`where`; all that are given must hold. null: every message. `unmatched`: messages that no other live route of the "
        "topic takes.",
        examples=[{"subject": "order.*"}],
    ),
]


class ExaminedMessage(Config):
    """A message that is not published: `body` or `body_base64`, and its other fields."""

    body: Annotated[
        Any, Field(description="A string stands for UTF-8 text, any other value for JSON.")
    ] = None
    body_base64: str | None = None
    subject: str = ""
    key: str = ""
    headers: dict[str, str] = {}
    content_type: str = ""

    def document(self, topic: TopicName) -> Document:
        """Return what matches see of the message. Raises ValidationFailed."""
        check_subject(self.subject)
        content, own_type = self._content()
        headers = headers_from_json(self.headers)
        if content_type := self.content_type or own_type:
            headers = with_content_type(headers, content_type)
        return Document(self.subject, self.key, headers, content, meta_of(topic.stream))

    def _content(self) -> tuple[bytes, str]:
        encoded = msgspec.UNSET if self.body_base64 is None else self.body_base64
        body = _raw(self.body) if "body" in self.model_fields_set else msgspec.UNSET
        if body is msgspec.UNSET and encoded is msgspec.UNSET:
            return b"", ""
        return body_from_json(body, encoded, "body")


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
