"""Published messages, and the definitions of routes as JSON."""

from typing import Any

import msgspec

from storage.domain.log.record_batch import Headers
from storage.domain.names import RouteName, TopicName
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.route import RouteSpec, RouteTarget
from storage.domain.topics.routed_message import RoutedMessage
from storage.domain.topics.topic import NewPublication
from storage.domain.topics.transform import Transform

ROUTE = RouteName(TopicName("orders"), "billing")
MESSAGE_ID = TopicMessageId("0123456789abcdef", 2, 17)
PUBLISHED_AT_MS = 1_767_225_600_123
JSON_TYPE = (":content_type", "", b"application/json")


def message(
    body: bytes = b"{}", subject: str = "order.created", key: str = "c7", headers: Headers = ()
) -> RoutedMessage:
    """Return a message as a route gets it."""
    record = NewPublication(body, subject, key, headers).record([1])
    return RoutedMessage(ROUTE, MESSAGE_ID, PUBLISHED_AT_MS, record)


def transform(**fields: Any) -> Transform:
    """Return the transform of a JSON definition."""
    return msgspec.convert(fields, Transform)


def spec(**fields: Any) -> RouteSpec:
    """Return a route to a queue."""
    return RouteSpec(**({"target": RouteTarget(queue="billing")} | fields))
