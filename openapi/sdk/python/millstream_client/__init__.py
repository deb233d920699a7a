"""Millstream: queues and streams over HTTP and WebSocket.

from millstream_client import Millstream

with Millstream() as client:
    client.queue("orders").send({"order": 7})
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream_client.aio.backtests import AsyncBackTestJob, AsyncViewBackTest
    from millstream_client.aio.client import AsyncMillstream
    from millstream_client.aio.groups import AsyncGroup, AsyncMember
    from millstream_client.aio.messages import AsyncMessage
    from millstream_client.aio.mirrors import AsyncMirror
    from millstream_client.aio.queries import AsyncQuery
    from millstream_client.aio.queues import AsyncQueue
    from millstream_client.aio.replays import AsyncReplay
    from millstream_client.aio.sockets import AsyncSocket
    from millstream_client.aio.sources import AsyncSource
    from millstream_client.aio.streams import AsyncStream
    from millstream_client.aio.subscriptions import AsyncSubscription
    from millstream_client.aio.topics import AsyncRoute, AsyncTopic
    from millstream_client.aio.views import AsyncView
    from millstream_client.aio.work import AsyncWorker
    from millstream_client.errors import (
        AlreadyExists,
        BadRequest,
        Conflict,
        ConnectionFailed,
        Forbidden,
        Gone,
        ItemRefused,
        Limited,
        Lost,
        MillstreamError,
        NeverConnected,
        NoReply,
        NotFound,
        NotMillstream,
        OutcomeUnknown,
        PartlyRefused,
        PreconditionFailed,
        Refused,
        ServerFailed,
        TimedOut,
        Unauthenticated,
        Unavailable,
    )
    from millstream_client.hooks import RequestEvent, ResponseEvent
    from millstream_client.messages import NewMessage, Sent
    from millstream_client.publications import NewPublication, Published
    from millstream_client.records import Appended, Gap, NewRecord, Record
    from millstream_client.requests import Reply
    from millstream_client.retries import Retries
    from millstream_client.sync.backtests import BackTestJob, ViewBackTest
    from millstream_client.sync.client import Millstream
    from millstream_client.sync.groups import Group, Member
    from millstream_client.sync.messages import Message
    from millstream_client.sync.mirrors import Mirror
    from millstream_client.sync.queries import Query
    from millstream_client.sync.queues import Queue
    from millstream_client.sync.replays import Replay
    from millstream_client.sync.sockets import Socket
    from millstream_client.sync.sources import Source
    from millstream_client.sync.streams import Stream
    from millstream_client.sync.subscriptions import Subscription
    from millstream_client.sync.topics import Route, Topic
    from millstream_client.sync.views import View
    from millstream_client.sync.work import Worker
    from millstream_client.working import Reject, Retry

__all__ = [
    "AlreadyExists",
    "Appended",
    "AsyncBackTestJob",
    "AsyncGroup",
    "AsyncMember",
    "AsyncMessage",
    "AsyncMillstream",
    "AsyncMirror",
    "AsyncQuery",
    "AsyncQueue",
    "AsyncReplay",
    "AsyncRoute",
    "AsyncSocket",
    "AsyncSource",
    "AsyncStream",
    "AsyncSubscription",
    "AsyncTopic",
    "AsyncView",
    "AsyncViewBackTest",
    "AsyncWorker",
    "BackTestJob",
    "BadRequest",
    "Conflict",
    "ConnectionFailed",
    "Forbidden",
    "Gap",
    "Gone",
    "Group",
    "ItemRefused",
    "Limited",
    "Lost",
    "Member",
    "Message",
    "Millstream",
    "MillstreamError",
    "Mirror",
    "NeverConnected",
    "NewMessage",
    "NewPublication",
    "NewRecord",
    "NoReply",
    "NotFound",
    "NotMillstream",
    "OutcomeUnknown",
    "PartlyRefused",
    "PreconditionFailed",
    "Published",
    "Query",
    "Queue",
    "Record",
    "Refused",
    "Reject",
    "Replay",
    "Reply",
    "RequestEvent",
    "ResponseEvent",
    "Retries",
    "Retry",
    "Route",
    "Sent",
    "ServerFailed",
    "Socket",
    "Source",
    "Stream",
    "Subscription",
    "TimedOut",
    "Topic",
    "Unauthenticated",
    "Unavailable",
    "View",
    "ViewBackTest",
    "Worker",
]

_NAMES = {
    "aio.backtests": ("AsyncBackTestJob", "AsyncViewBackTest"),
    "aio.client": ("AsyncMillstream",),
    "aio.groups": ("AsyncGroup", "AsyncMember"),
    "aio.messages": ("AsyncMessage",),
    "aio.queries": ("AsyncQuery",),
    "aio.queues": ("AsyncQueue",),
    "aio.replays": ("AsyncReplay",),
    "aio.mirrors": ("AsyncMirror",),
    "aio.sockets": ("AsyncSocket",),
    "aio.sources": ("AsyncSource",),
    "aio.streams": ("AsyncStream",),
    "aio.subscriptions": ("AsyncSubscription",),
    "aio.topics": ("AsyncRoute", "AsyncTopic"),
    "aio.views": ("AsyncView",),
    "aio.work": ("AsyncWorker",),
    "errors": (
        "AlreadyExists",
        "BadRequest",
        "Conflict",
        "ConnectionFailed",
        "Forbidden",
        "Gone",
        "ItemRefused",
        "Limited",
        "Lost",
        "MillstreamError",
        "NeverConnected",
        "NoReply",
        "NotFound",
        "NotMillstream",
        "OutcomeUnknown",
        "PartlyRefused",
        "PreconditionFailed",
        "Refused",
        "ServerFailed",
        "TimedOut",
        "Unauthenticated",
        "Unavailable",
    ),
    "hooks": ("RequestEvent", "ResponseEvent"),
    "messages": ("NewMessage", "Sent"),
    "publications": ("NewPublication", "Published"),
    "requests": ("Reply",),
    "records": ("Appended", "Gap", "NewRecord", "Record"),
    "retries": ("Retries",),
    "sync.backtests": ("BackTestJob", "ViewBackTest"),
    "sync.client": ("Millstream",),
    "sync.groups": ("Group", "Member"),
    "sync.messages": ("Message",),
    "sync.queries": ("Query",),
    "sync.queues": ("Queue",),
    "sync.replays": ("Replay",),
    "sync.mirrors": ("Mirror",),
    "sync.sockets": ("Socket",),
    "sync.sources": ("Source",),
    "sync.streams": ("Stream",),
    "sync.subscriptions": ("Subscription",),
    "sync.topics": ("Route", "Topic"),
    "sync.views": ("View",),
    "sync.work": ("Worker",),
    "working": ("Reject", "Retry"),
}
"""Names by module, which is loaded when one of them is used: few programs use all."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
