"""AddPermission and RemovePermission: statements of a queue's policy.

The policy is stored and not in effect.
"""

from typing import Annotated

from msgspec import field

from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, named
from api.aws.sqs.call_helpers import arns_of, queue_name
from api.aws.sqs.errors import missing, required
from api.aws.sqs.metadata import annotated, annotation
from api.aws.sqs.queues.attributes import POLICY
from api.aws.sqs.queues.policies import add_permission, check_honoured, remove_permission
from api.aws.sqs.shapes import Names
from storage.domain.access.permissions import Action
from storage.domain.queues.queue import QueueSpec

operations = Operations()


class AddPermission(Input):
    """Accounts and the actions to allow them, under a label."""

    queue_url: str | None = None
    label: str | None = None
    account_ids: Annotated[Names, named("AWSAccountId")] = field(name="AWSAccountIds", default=None)
    actions: Annotated[Names, named("ActionName")] = None


class RemovePermission(Input):
    """A statement's label."""

    queue_url: str | None = None
    label: str | None = None


@operations.add("AddPermission", AddPermission, Action.QUEUE_MANAGE)
async def add_permission_to_queue(call: AwsCall[AddPermission]) -> None:
    """Add a statement to a queue's policy."""
    request = call.request
    name = queue_name(call, request.queue_url)
    label = required(request.label, "Label")
    accounts, actions = request.account_ids, request.actions
    if not accounts:
        raise missing("AWSAccountIds")
    if not actions:
        raise missing("Actions")
    arn = (await arns_of(call)).of(name.name)

    if call.guarded:  # refuse a statement that would not be enforced before storing it
        await check_honoured(call, add_permission(None, arn, label, accounts, actions))

    def add(spec: QueueSpec) -> QueueSpec:
        policy = add_permission(annotation(spec, POLICY), arn, label, accounts, actions)
        return annotated(spec, POLICY, policy)

    await call.storage.catalog.change_queue(name, add)


@operations.add("RemovePermission", RemovePermission, Action.QUEUE_MANAGE)
async def remove_permission_from_queue(call: AwsCall[RemovePermission]) -> None:
    """Remove a statement from a queue's policy."""
    name = queue_name(call, call.request.queue_url)
    label = required(call.request.label, "Label")

    def remove(spec: QueueSpec) -> QueueSpec:
        return annotated(spec, POLICY, remove_permission(annotation(spec, POLICY), label))

    await call.storage.catalog.change_queue(name, remove)
