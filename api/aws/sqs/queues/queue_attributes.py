"""Attributes of a queue: those that its owner set, and those that are computed."""

from collections.abc import Sequence

from api.aws.sqs.errors import INVALID_ATTRIBUTE_NAME, refuse
from api.aws.sqs.queues.arns import Arns
from api.aws.sqs.queues.attributes import ATTRIBUTES, read_attributes
from storage.domain import limits
from storage.domain.queues.queue import Queue, QueueStats

ALL = "All"
COUNTS = {
    "ApproximateNumberOfMessages": ("ready",),
    "ApproximateNumberOfMessagesNotVisible": ("in_flight", "parked"),
    "ApproximateNumberOfMessagesDelayed": ("delayed",),
}
"""Count attributes, and the counters that they add up; here they are exact."""

_FACTS = frozenset({"QueueArn", "CreatedTimestamp", "LastModifiedTimestamp"})
QUEUE_ATTRIBUTE_NAMES = frozenset({ALL, *ATTRIBUTES, *COUNTS, *_FACTS})


def check_names(names: Sequence[str]) -> None:
    """Raise AwsError for a name that is not a queue attribute."""
    for name in names:
        if name not in QUEUE_ATTRIBUTE_NAMES:
            refuse(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name[:80]}.")


def wants_counts(names: Sequence[str]) -> bool:
    """Return whether these attributes require message counts."""
    return any(name == ALL or name in COUNTS for name in names)


def selected_attributes(
    queue: Queue, stats: QueueStats | None, names: Sequence[str], arns: Arns
) -> dict[str, str]:
    """Return the named attributes that are set; `stats` is required if counts are among them."""
    attributes = {
        **read_attributes(queue.spec, arns),
        "QueueArn": arns.of(queue.name.name),
        "CreatedTimestamp": str(queue.created_at_ms // limits.SECOND_MS),
        "LastModifiedTimestamp": str(queue.changed_at_ms // limits.SECOND_MS),
    }
    if stats is not None:
        attributes |= {
            name: str(sum(getattr(stats, field) for field in fields))
            for name, fields in COUNTS.items()
        }
    if ALL in names:
        return attributes
    return {name: attributes[name] for name in names if name in attributes}
