"""Who asks, and what they ask to do."""

from enum import StrEnum

import msgspec

from storage.domain.names import DEFAULT_NAMESPACE


class Action(StrEnum):
    """Everything that is allowed or refused, one word for all doors."""

    QUEUE_SEND = "queue:send"
    QUEUE_RECEIVE = "queue:receive"
    QUEUE_READ = "queue:read"
    QUEUE_PURGE = "queue:purge"
    QUEUE_MANAGE = "queue:manage"
    STREAM_PUT = "stream:put"
    STREAM_READ = "stream:read"
    STREAM_MANAGE = "stream:manage"
    GROUP_CONSUME = "group:consume"
    GROUP_READ = "group:read"
    GROUP_MANAGE = "group:manage"
    JOB_READ = "job:read"
    JOB_MANAGE = "job:manage"
    REPLAY_READ = "replay:read"
    REPLAY_MANAGE = "replay:manage"
    WEBHOOK_READ = "webhook:read"
    WEBHOOK_MANAGE = "webhook:manage"
    METRICS_READ = "metrics:read"


class Principal(msgspec.Struct, frozen=True):
    """A caller, within the namespace its credentials give it."""

    name: str
    namespace: str = DEFAULT_NAMESPACE


LOCAL_ADMINISTRATOR = Principal("local-administrator")
"""Everyone, in open mode, which listens on loopback only."""
