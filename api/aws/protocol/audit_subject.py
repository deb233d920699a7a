"""Audit subjects of AWS calls: the resource that an operation's input names."""

import msgspec

from api.auth.audit import AuditSubject
from storage.domain.access.permissions import Action

_MEMBERS = (
    "queue_name",
    "queue_url",
    "source_arn",
    "stream_name",
    "stream_arn",
    "resource_arn",
    "consumer_arn",
)


def subject_of(operation: str, action: Action, request: msgspec.Struct, noun: str) -> AuditSubject:
    """Return the audit subject of a call, with its resource as a native path.

    `noun`: `queue` or `stream`.
    """
    values = (getattr(request, member, None) for member in _MEMBERS)
    name = next((_name(word) for word in values if isinstance(word, str) and word), "")
    nouns = f"{noun}s"
    resource = f"{nouns}/{name}" if name else nouns
    return AuditSubject(operation, action, resource, name, nouns, name)


def _name(identifier: str) -> str:
    """Return the resource that a name, a URL or an ARN identifies."""
    if identifier.startswith("arn:"):
        _, stream, rest = identifier.partition(":stream/")
        return rest.partition("/")[0] if stream else identifier.rpartition(":")[2]
    return identifier.removesuffix("/").rpartition("/")[2]
