"""Queue attributes as a queue's specification, and back.

    attribute                       specification            note
    VisibilityTimeout, Delay…,      …_ms, message_bytes_max  seconds and bytes
    Maximum…, …RetentionPeriod,
    ReceiveMessageWaitTimeSeconds
    FifoQueue                       type                     only at creation
    ContentBasedDeduplication       deduplicate_by_content   FIFO only, as the two below
    DeduplicationScope              dedup_scope
    FifoThroughputLimit             annotation               kept; nothing here is capped by it
    RedrivePolicy                   dead_letters             `api.aws.sqs.queues.redrive`
    RedriveAllowPolicy              redrive_allow            the same
    Policy                          annotation               kept; access is the deployment's own matter
    KmsMasterKeyId, KmsDataKey…,    annotations              kept; nothing is encrypted by them
    SqsManagedSseEnabled

Ranges and defaults: docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn

from msgspec.structs import replace

from api.aws.sqs.errors import INVALID_ATTRIBUTE_NAME, INVALID_ATTRIBUTE_VALUE, refuse
from api.aws.sqs.metadata import annotated, annotation
from api.aws.sqs.queues.arns import Arns
from api.aws.sqs.queues.policies import check_policy
from api.aws.sqs.queues.redrive import (
    REDRIVE_ALLOW_POLICY,
    REDRIVE_POLICY,
    read_redrive_allow_policy,
    read_redrive_policy,
    write_redrive_allow_policy,
    write_redrive_policy,
)
from storage.domain import limits
from storage.domain.queues.queue import DedupScope, QueueSpec, QueueType

FIFO_QUEUE = "FifoQueue"
CONTENT_BASED_DEDUPLICATION = "ContentBasedDeduplication"
KMS_KEY_CHARACTERS_MAX = 2_048  # the longest KeyId that KMS accepts
POLICY = "Policy"

_UNKNOWN_IN_STANDARD = frozenset({FIFO_QUEUE, CONTENT_BASED_DEDUPLICATION})
_KMS_KEY = "KmsMasterKeyId"
_KMS_REUSE = "KmsDataKeyReusePeriodSeconds"
_KMS_REUSE_DEFAULT = "300"
_SSE = "SqsManagedSseEnabled"
_THROUGHPUT = "FifoThroughputLimit"
_PER_QUEUE, _PER_GROUP = "perQueue", "perMessageGroupId"
_SCOPES = {"queue": DedupScope.QUEUE, "messageGroup": DedupScope.GROUP}
_SCOPE_VALUES = {scope: word for word, scope in _SCOPES.items()}


class Attribute(NamedTuple):
    """Reader and writer of one attribute of a specification. Writing raises AwsError."""

    read: Callable[[QueueSpec, Arns], str | None]
    write: Callable[[QueueSpec, str, Arns], QueueSpec]
    fifo_only: bool = False


def apply_attributes(spec: QueueSpec, attributes: Mapping[str, str], arns: Arns) -> QueueSpec:
    """Return the specification with these attributes. Raises AwsError.

    FifoQueue must match the type of the specification.
    """
    for name, text in attributes.items():
        fifo = spec.type is QueueType.FIFO
        attribute = ATTRIBUTES.get(name)
        if attribute is None or (name in _UNKNOWN_IN_STANDARD and not fifo):
            refuse(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {name}.")
        if attribute.fifo_only and not fifo:
            message = f"You can specify the {name} only when FifoQueue is set to true."
            refuse(INVALID_ATTRIBUTE_NAME, message)
        spec = attribute.write(spec, text, arns)
    _check_together(spec, attributes)
    return spec


def _check_together(spec: QueueSpec, attributes: Mapping[str, str]) -> None:
    if attributes.get(_KMS_KEY) and attributes.get(_SSE, "").lower() == "true":
        refuse(
            INVALID_ATTRIBUTE_NAME,
            "You can use one type of server-side encryption (SSE) at one time. "
            "You can either enable KMS SSE or SQS SSE.",
        )
    if (
        annotation(spec, _THROUGHPUT) == _PER_GROUP
        and spec.type is QueueType.FIFO
        and spec.dedup_scope is not DedupScope.GROUP
    ):
        refuse(
            INVALID_ATTRIBUTE_VALUE,
            f"Invalid value for the parameter {_THROUGHPUT}. "
            f"Reason: {_PER_GROUP} needs DeduplicationScope messageGroup.",
        )


def read_attributes(spec: QueueSpec, arns: Arns) -> dict[str, str]:
    """Return every attribute that was set or has a default."""
    fifo = spec.type is QueueType.FIFO
    return {
        name: text
        for name, attribute in ATTRIBUTES.items()
        if (fifo or not attribute.fifo_only) and (text := attribute.read(spec, arns)) is not None
    }


def first_difference(spec: QueueSpec, attributes: Mapping[str, str], arns: Arns) -> str | None:
    """Return the first attribute that differs from the specification. Raises AwsError."""
    for name, text in attributes.items():
        if name == FIFO_QUEUE and _parse_boolean(name, text) is not (spec.type is QueueType.FIFO):
            return name
        if apply_attributes(spec, {name: text}, arns) != spec:
            return name
    return None


def bad_value(name: str, reason: str = "") -> NoReturn:
    """Raise the error of an attribute's value that is not allowed."""
    suffix = f" Reason: {reason}" if reason else ""
    refuse(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter {name}.{suffix}")


def _number(name: str, text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and low <= int(text) <= high):
        bad_value(name)
    return int(text)


def _parse_boolean(name: str, text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false"):
        bad_value(name)
    return word == "true"


def _format_boolean(truth: bool) -> str:
    return "true" if truth else "false"


def _seconds(name: str, field: str, low: int, high: int) -> Attribute:
    """Return an attribute in seconds of a field in milliseconds."""

    def read(spec: QueueSpec, _: Arns) -> str:
        return str(getattr(spec, field) // limits.SECOND_MS)

    def write(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
        return replace(spec, **{field: _number(name, text, low, high) * limits.SECOND_MS})

    return Attribute(read, write)


def _write_size(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    bytes_max = _number("MaximumMessageSize", text, limits.KIB, limits.MESSAGE_BYTES_MAX)
    return replace(spec, message_bytes_max=bytes_max)


def _write_fifo(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    if not _parse_boolean(FIFO_QUEUE, text):
        bad_value(FIFO_QUEUE, "Modifying queue type is not supported.")
    return spec


def _write_by_content(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    by_content = _parse_boolean(CONTENT_BASED_DEDUPLICATION, text)
    return replace(spec, deduplicate_by_content=by_content)


def _write_scope(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    if text not in _SCOPES:
        bad_value("DeduplicationScope")
    return replace(spec, dedup_scope=_SCOPES[text])


def _write_throughput(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    if text not in (_PER_QUEUE, _PER_GROUP):
        bad_value(_THROUGHPUT)
    return annotated(spec, _THROUGHPUT, None if text == _PER_QUEUE else text)


def _write_policy(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    if text:
        check_policy(text)
    return annotated(spec, POLICY, text or None)


def _write_kms_key(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    """Write the KMS key, which ends encryption with SQS's own key.

    That does not return when the KMS key is removed, as at Amazon.
    """
    if not text.isprintable() or len(text) > KMS_KEY_CHARACTERS_MAX:
        bad_value(_KMS_KEY)
    spec = annotated(spec, _KMS_KEY, text or None)
    return annotated(spec, _SSE, "false") if text else spec


def _write_kms_reuse(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    _number(_KMS_REUSE, text, 60, 86_400)
    return annotated(spec, _KMS_REUSE, None if text == _KMS_REUSE_DEFAULT else text)


def _write_sse(spec: QueueSpec, text: str, _: Arns) -> QueueSpec:
    if _parse_boolean(_SSE, text):
        return annotated(annotated(spec, _SSE, None), _KMS_KEY, None)
    return annotated(spec, _SSE, "false")


ATTRIBUTES: dict[str, Attribute] = {
    "VisibilityTimeout": _seconds("VisibilityTimeout", "visibility_timeout_ms", 0, 43_200),
    "DelaySeconds": _seconds("DelaySeconds", "delay_ms", 0, 900),
    "MaximumMessageSize": Attribute(lambda spec, _: str(spec.message_bytes_max), _write_size),
    "MessageRetentionPeriod": _seconds("MessageRetentionPeriod", "retention_ms", 60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": _seconds(
        "ReceiveMessageWaitTimeSeconds", "receive_wait_ms", 0, 20
    ),
    FIFO_QUEUE: Attribute(
        lambda spec, _: "true" if spec.type is QueueType.FIFO else None, _write_fifo
    ),
    CONTENT_BASED_DEDUPLICATION: Attribute(
        lambda spec, _: _format_boolean(spec.deduplicate_by_content), _write_by_content, True
    ),
    "DeduplicationScope": Attribute(
        lambda spec, _: _SCOPE_VALUES[spec.dedup_scope], _write_scope, True
    ),
    _THROUGHPUT: Attribute(
        lambda spec, _: annotation(spec, _THROUGHPUT) or _PER_QUEUE, _write_throughput, True
    ),
    REDRIVE_POLICY: Attribute(read_redrive_policy, write_redrive_policy),
    REDRIVE_ALLOW_POLICY: Attribute(read_redrive_allow_policy, write_redrive_allow_policy),
    POLICY: Attribute(lambda spec, _: annotation(spec, POLICY), _write_policy),
    _KMS_KEY: Attribute(lambda spec, _: annotation(spec, _KMS_KEY), _write_kms_key),
    _KMS_REUSE: Attribute(lambda spec, _: annotation(spec, _KMS_REUSE), _write_kms_reuse),
    _SSE: Attribute(lambda spec, _: annotation(spec, _SSE) or "true", _write_sse),
}
"""Attributes that an owner can set. The computed ones are in `actions.queue_attributes`."""
