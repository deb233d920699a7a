"""Millstream: queues and streams over HTTP and WebSocket.

from millstream_client import Millstream

with Millstream() as client:
    client.queue("orders").send({"order": 7})
"""

from millstream_client.aio.client import AsyncMillstream
from millstream_client.aio.groups import AsyncGroup, AsyncMember
from millstream_client.aio.messages import AsyncMessage
from millstream_client.aio.queues import AsyncQueue
from millstream_client.aio.replays import AsyncReplay
from millstream_client.aio.sources import AsyncSource
from millstream_client.aio.streams import AsyncStream
from millstream_client.aio.subscriptions import AsyncSubscription
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
from millstream_client.messages import NewMessage, Sent
from millstream_client.records import Appended, Gap, NewRecord, Record
from millstream_client.retries import Retries
from millstream_client.sync.client import Millstream
from millstream_client.sync.groups import Group, Member
from millstream_client.sync.messages import Message
from millstream_client.sync.queues import Queue
from millstream_client.sync.replays import Replay
from millstream_client.sync.sources import Source
from millstream_client.sync.streams import Stream
from millstream_client.sync.subscriptions import Subscription
from millstream_client.sync.work import Worker
from millstream_client.working import Reject, Retry

__all__ = [
    "AlreadyExists",
    "Appended",
    "AsyncGroup",
    "AsyncMember",
    "AsyncMessage",
    "AsyncMillstream",
    "AsyncQueue",
    "AsyncReplay",
    "AsyncSource",
    "AsyncStream",
    "AsyncSubscription",
    "AsyncWorker",
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
    "NeverConnected",
    "NewMessage",
    "NewRecord",
    "NotFound",
    "NotMillstream",
    "OutcomeUnknown",
    "PartlyRefused",
    "PreconditionFailed",
    "Queue",
    "Record",
    "Refused",
    "Reject",
    "Replay",
    "Retries",
    "Retry",
    "Sent",
    "ServerFailed",
    "Source",
    "Stream",
    "Subscription",
    "TimedOut",
    "Unauthenticated",
    "Unavailable",
    "Worker",
]
