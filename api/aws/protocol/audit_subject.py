"""What an operation's input says of the resource that it is about, for the audit log."""

import msgspec

from api.auth.audit import About
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


def about(operation: str, action: Action, asked: msgspec.Struct, noun: str) -> About:
    """What a call wants; its resource as the native path has it. `noun`: `queue` or `stream`."""
    words = (getattr(asked, member, None) for member in _MEMBERS)
    name = next((_name(word) for word in words if isinstance(word, str) and word), "")
    nouns = f"{noun}s"
    resource = f"{nouns}/{name}" if name else nouns
    return About(operation, action, resource, name, nouns, name)


def _name(word: str) -> str:
    """The resource that a name, a URL or an ARN names."""
    if word.startswith("arn:"):
        _, stream, rest = word.partition(":stream/")
        return rest.partition("/")[0] if stream else word.rpartition(":")[2]
    return word.rpartition("/")[2]
