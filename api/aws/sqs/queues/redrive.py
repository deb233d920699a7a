"""RedrivePolicy and RedriveAllowPolicy: JSON text of the engine's dead-letter rules.

{"deadLetterTargetArn": "arn:…", "maxReceiveCount": 3}        the count may be a numeric string
{"redrivePermission": "allowAll" | "denyAll" | "byQueue", "sourceQueueArns": ["arn:…"]}
"""

from typing import Any, NoReturn

import msgspec
from msgspec.structs import replace

from api.aws.sqs.errors import INVALID_ATTRIBUTE_VALUE, invalid_value, refuse
from api.aws.sqs.metadata import annotated, annotation
from api.aws.sqs.queues.arns import Arns
from storage.domain import limits
from storage.domain.names import QueueName
from storage.domain.queues.queue import (
    DeadLetterTarget,
    Queue,
    QueueSpec,
    RedriveAllow,
    RedrivePermission,
)

REDRIVE_POLICY = "RedrivePolicy"
REDRIVE_ALLOW_POLICY = "RedriveAllowPolicy"

_PERMISSIONS = {
    "allowAll": RedrivePermission.ALLOW_ALL,
    "denyAll": RedrivePermission.DENY_ALL,
    "byQueue": RedrivePermission.BY_QUEUE,
}
_PERMISSION_VALUES = {permission: word for word, permission in _PERMISSIONS.items()}


def read_redrive_policy(spec: QueueSpec, arns: Arns) -> str | None:
    """Return the policy's text; None when there is none."""
    target = spec.dead_letters
    if target is None or target.queue is None:  # SQS has no topics
        return None
    policy = {
        "deadLetterTargetArn": arns.of(target.queue),
        "maxReceiveCount": target.receives_max,
    }
    return _text(policy)


def write_redrive_policy(spec: QueueSpec, text: str, arns: Arns) -> QueueSpec:
    """Return the specification with the policy; an empty one removes it. Raises AwsError."""
    return replace(spec, dead_letters=_target(text, arns) if text else None)


def _target(text: str, arns: Arns) -> DeadLetterTarget:
    policy = _object(text)
    if policy is None:
        raise invalid_value(REDRIVE_POLICY, text, "Redrive policy is not a valid JSON map.")
    for member in ("deadLetterTargetArn", "maxReceiveCount"):
        if member not in policy:
            reason = f"Redrive policy does not contain mandatory attribute: {member}."
            raise invalid_value(REDRIVE_POLICY, text, reason)
    queue = arns.queue(str(policy["deadLetterTargetArn"]))
    if queue is None:
        raise invalid_value(REDRIVE_POLICY, text, "Dead letter target does not exist.")
    return DeadLetterTarget(queue.name, _receives_max(policy["maxReceiveCount"], text))


def _receives_max(count: object, text: str) -> int:
    digits = str(count)
    if isinstance(count, int | str) and digits.isascii() and digits.isdigit() and len(digits) < 6:
        receives_max = int(digits)
        if 1 <= receives_max <= limits.RECEIVES_MAX_MAX:
            return receives_max
    reason = (
        f"Invalid value for maxReceiveCount: {_as_json(count)}, valid values are from 1 to "
        f"{limits.RECEIVES_MAX_MAX} both inclusive."
    )
    raise invalid_value(REDRIVE_POLICY, text, reason)


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def check_target(source: QueueName, spec: QueueSpec, target: Queue | None, text: str) -> None:
    """Raise AwsError unless `target` accepts the dead letters of `source` with `spec`."""
    if target is None:
        raise invalid_value(REDRIVE_POLICY, text, "Dead letter target does not exist.")
    if target.name == source:
        raise invalid_value(REDRIVE_POLICY, text, "A queue cannot be its own dead-letter queue.")
    if target.spec.type is not spec.type:
        reason = "Dead-letter queue must be same type of queue as the source."
        raise invalid_value(REDRIVE_POLICY, text, reason)
    if not target.spec.redrive_allow.allows(source.name):
        reason = "The dead-letter queue's RedriveAllowPolicy does not allow this source queue."
        raise invalid_value(REDRIVE_POLICY, text, reason)


def read_redrive_allow_policy(spec: QueueSpec, arns: Arns) -> str | None:
    """Return the policy's text; None when it was never set."""
    allow = spec.redrive_allow
    if allow == RedriveAllow():
        return annotation(spec, REDRIVE_ALLOW_POLICY)
    policy: dict[str, Any] = {"redrivePermission": _PERMISSION_VALUES[allow.permission]}
    if allow.sources:
        policy["sourceQueueArns"] = [arns.of(source) for source in allow.sources]
    return _text(policy)


def write_redrive_allow_policy(spec: QueueSpec, text: str, arns: Arns) -> QueueSpec:
    """Return the specification with the policy; an empty one removes it. Raises AwsError.

    Without a policy every source is allowed, too. The text of `allowAll` is stored, because its owner expects to read it
    again.
    """
    allow = _allow(text, arns) if text else RedriveAllow()
    annotation_text = (
        '{"redrivePermission":"allowAll"}' if text and allow == RedriveAllow() else None
    )
    return annotated(replace(spec, redrive_allow=allow), REDRIVE_ALLOW_POLICY, annotation_text)


def _allow(text: str, arns: Arns) -> RedriveAllow:
    policy = _object(text) or {}
    permission = _PERMISSIONS.get(str(policy.get("redrivePermission")))
    if permission is None:
        _refuse_allow("redrivePermission must be allowAll, denyAll or byQueue.")
    sources = policy.get("sourceQueueArns")
    if (sources is not None) is not (permission is RedrivePermission.BY_QUEUE):
        _refuse_allow("sourceQueueArns is allowed only with byQueue.")
    return RedriveAllow(permission, () if sources is None else _sources(sources, arns))


def _sources(sources: object, arns: Arns) -> tuple[str, ...]:
    if not isinstance(sources, list) or not 1 <= len(sources) <= limits.REDRIVE_SOURCES_MAX:
        _refuse_allow(f"sourceQueueArns must be a list of 1 to {limits.REDRIVE_SOURCES_MAX} ARNs.")
    names = []
    for arn in sources:
        queue = arns.queue(str(arn))
        if queue is None:
            _refuse_allow("sourceQueueArns must be queues of this account.")
        names.append(queue.name)
    return tuple(names)


def _refuse_allow(reason: str) -> NoReturn:
    message = f"Invalid value for the parameter {REDRIVE_ALLOW_POLICY}. Reason: {reason}"
    refuse(INVALID_ATTRIBUTE_VALUE, message)


def _object(text: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None


def _text(policy: dict[str, Any]) -> str:
    return msgspec.json.encode(policy).decode()
