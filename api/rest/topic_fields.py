"""Fields that schemas of topics and of routes have in common, and messages to be examined."""

from typing import Annotated, Any

import msgspec
from pydantic import Field

from api.native.fields import body_from_json, headers_from_json
from api.native.records import with_content_type
from api.rest.schema_base import Config, Seconds
from storage.domain.filters.subjects import check_subject
from storage.domain.topics.topic import NewPublication

LagMessages = Annotated[
    int, Field(description="Messages that routers have not examined yet, whether routes take them.")
]
LagSeconds = Annotated[Seconds, Field(description="Age of the oldest of these messages.")]


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

    def to_domain(self) -> NewPublication:
        """Convert the message. Raises ValidationFailed."""
        check_subject(self.subject)
        body = msgspec.UNSET if "body" not in self.model_fields_set else _raw(self.body)
        encoded = msgspec.UNSET if self.body_base64 is None else self.body_base64
        if body is msgspec.UNSET and encoded is msgspec.UNSET:
            body = _raw("")
        content, own_type = body_from_json(body, encoded, "body")
        headers = headers_from_json(self.headers)
        content_type = self.content_type or own_type
        if content_type:
            headers = with_content_type(headers, content_type)
        return NewPublication(content, self.subject, self.key, headers)


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
