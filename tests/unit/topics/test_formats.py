"""Formats of copies: body, envelope, CloudEvents."""

import msgspec
import pytest

from storage.domain.errors import ValidationFailed
from storage.domain.topics.formats import CopyFormat
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.routed_message import CopyContent
from tests.unit.topics.messages import JSON_TYPE, message

HEADERS = (("tenant", "", b"t7"), ("raw", "Binary", b"\xff"), ("traceparent", "", b"00-1"))


def content_in(form: CopyFormat, *args, **fields) -> CopyContent:
    published = message(*args, **fields)
    return form.apply(published, published.content)


def test_body_keeps_message_as_it_is():
    content = content_in(CopyFormat.BODY, b"x", headers=HEADERS)

    assert content == CopyContent(b"x", HEADERS, "", "order.created")


def test_envelope_has_everything_of_message():
    content = content_in(CopyFormat.ENVELOPE, b'{"total": 1.10}', headers=(*HEADERS, JSON_TYPE))

    assert content.content_type == "application/json"
    assert content.headers == (("traceparent", "", b"00-1"),)
    assert b'"body":{"total": 1.10}' in content.body
    assert msgspec.json.decode(content.body) == {
        "id": "0123456789abcdef-2-17",
        "topic": "orders",
        "route": "billing",
        "subject": "order.created",
        "key": "c7",
        "published_at": "2026-01-01T00:00:00.123Z",
        "content_type": "application/json",
        "headers": {"tenant": "t7", "traceparent": "00-1"},
        "headers_base64": {"raw": "/w=="},
        "body": {"total": 1.1},
    }


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (b"plain", (), {"body": "plain"}),
        (b"{}", (), {"body": "{}"}),
        (b"{", (JSON_TYPE,), {"body": "{"}),
        (b"\xff", (), {"body_base64": "/w=="}),
    ],
)
def test_envelope_represents_body_exactly(body, headers, expected):
    envelope = msgspec.json.decode(content_in(CopyFormat.ENVELOPE, body, headers=headers).body)

    assert {name: value for name, value in envelope.items() if name.startswith("body")} == expected


def test_cloudevent_has_attributes_and_data():
    content = content_in(CopyFormat.CLOUDEVENTS, b'{"total": 1.10}', headers=(*HEADERS, JSON_TYPE))

    assert content.content_type == "application/cloudevents+json"
    assert content.headers == HEADERS
    assert msgspec.json.decode(content.body) == {
        "specversion": "1.0",
        "id": "0123456789abcdef-2-17",
        "source": "/topics/orders",
        "type": "order.created",
        "subject": "order.created",
        "time": "2026-01-01T00:00:00.123Z",
        "datacontenttype": "application/json",
        "data": {"total": 1.1},
    }


def test_cloudevent_without_subject_has_common_type():
    event = msgspec.json.decode(content_in(CopyFormat.CLOUDEVENTS, b"x", "").body)

    assert event["type"] == "millstream.message"
    assert "subject" not in event


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"plain", "", ("text/plain", "plain", None)),
        (b"5", "", ("text/plain", "5", None)),
        (b"<a/>", "text/xml", ("text/xml", "<a/>", None)),
        (b"\xff", "", ("application/octet-stream", None, "/w==")),
        (b"\xff", "image/png", ("image/png", None, "/w==")),
        (b"[1]", "application/vnd.x+json; v=1", ("application/vnd.x+json; v=1", [1], None)),
        (b"[1", "application/json", ("application/json", None, "WzE=")),
        (b"[1]", "Text/JSON", ("Text/JSON", [1], None)),
    ],
)
def test_cloudevent_represents_data_exactly(body, content_type, expected):
    headers = ((":content_type", "", content_type.encode()),) if content_type else ()

    event = msgspec.json.decode(content_in(CopyFormat.CLOUDEVENTS, body, headers=headers).body)

    assert (event["datacontenttype"], event.get("data"), event.get("data_base64")) == expected


def test_binary_cloudevent_has_attributes_in_headers():
    content = content_in(
        CopyFormat.CLOUDEVENTS_BINARY, b"x", headers=(("ce-id", "", b"own"), ("tenant", "", b"t7"))
    )

    assert (content.body, content.content_type) == (b"x", "")
    assert {name: value.decode() for name, _, value in content.headers} == {
        "tenant": "t7",
        "ce-specversion": "1.0",
        "ce-id": "0123456789abcdef-2-17",
        "ce-source": "/topics/orders",
        "ce-type": "order.created",
        "ce-subject": "order.created",
        "ce-time": "2026-01-01T00:00:00.123Z",
    }


def test_message_id_is_parsed_from_its_text():
    message_id = TopicMessageId("0123456789abcdef", 3, 2**53 - 1)

    assert TopicMessageId.parse(str(message_id)) == message_id


@pytest.mark.parametrize(
    "text", ["", "x", "ab-1", "ab-1-", "ab-01-2", "ab-1--2", "AB-1-2", "ab-1-9999999999999999"]
)
def test_invalid_message_id_is_refused(text):
    with pytest.raises(ValidationFailed):
        TopicMessageId.parse(text)
