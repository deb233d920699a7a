"""Names of a SQL condition, and the paths of the document that they refer to.

    body.total  headers.tenant  meta.hops  subject      a path
    retries  "trace-id"  [trace-id]  user.retries       a header
    sys.Label  sys.SessionId  JMSType  JMSXGroupID      a property of Service Bus or JMS, by the tables below

A quoted name without a dot before it is a header, whatever it says.
"""

from collections.abc import Sequence

from storage.domain import limits
from storage.domain.filters.sql.errors import ConditionInvalid

Path = tuple[str, ...]

ROOTS = frozenset({"subject", "key", "headers", "body", "content_type", "size", "meta"})
SCOPES = frozenset({"sys", "user"})

SYSTEM_PROPERTIES: dict[str, Path] = {
    "label": ("subject",),
    "subject": ("subject",),
    "contenttype": ("content_type",),
    "sessionid": ("key",),
    "partitionkey": ("key",),
    "size": ("size",),
    "messageid": ("headers", "MessageId"),
    "correlationid": ("headers", "CorrelationId"),
    "to": ("headers", "To"),
    "replyto": ("headers", "ReplyTo"),
    "replytosessionid": ("headers", "ReplyToSessionId"),
}
"""System properties of Service Bus, by name in lower case: their case is not significant."""

JMS_FIELDS: dict[str, Path] = {
    "JMSType": ("subject",),
    "JMSMessageID": ("headers", "MessageId"),
    "JMSCorrelationID": ("headers", "CorrelationId"),
    "JMSPriority": ("headers", "JMSPriority"),
    "JMSTimestamp": ("headers", "JMSTimestamp"),
    "JMSDeliveryMode": ("headers", "JMSDeliveryMode"),
    "JMSXGroupID": ("key",),
}
"""Header fields that a JMS selector may name (Jakarta Messaging 3.1, section 3.8.1.1)."""


def resolve(words: Sequence[str], *, is_quoted: bool, position: int | None = None) -> Path:
    """Return the path that a name refers to; `is_quoted` is about its first word.

    Raises ConditionInvalid.
    """
    if len(words) > limits.WHERE_PATH_PARTS_MAX:
        detail = f"A name has at most {limits.WHERE_PATH_PARTS_MAX} words."
        raise ConditionInvalid(detail, position)
    first = words[0]
    if len(words) == 1:
        return _resolve_single(first, is_quoted=is_quoted)
    if first in ROOTS:
        return tuple(words)
    if first == "user":
        return ("headers", *words[1:])
    if first.lower() == "sys":
        return _system_property(words[1:], position)
    raise ConditionInvalid(
        f"'{first}' is not a field of a message. A path begins with one of"
        f" {', '.join(sorted(ROOTS))}; write a header with a dot in its name as"
        f' "{".".join(words)}".',
        position,
    )


def _resolve_single(name: str, *, is_quoted: bool) -> Path:
    if is_quoted:
        return ("headers", name)
    if name in ROOTS:
        return (name,)
    return JMS_FIELDS.get(name, ("headers", name))


def _system_property(words: Sequence[str], position: int | None) -> Path:
    name = ".".join(words)
    if path := SYSTEM_PROPERTIES.get(name.lower()):
        return path
    raise ConditionInvalid(f"A message has no system property 'sys.{name}'.", position)
