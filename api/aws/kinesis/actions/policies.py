"""PutResourcePolicy, GetResourcePolicy and DeleteResourcePolicy: stored, not in effect."""

from typing import Annotated

from api.aws.kinesis.errors import RESOURCE_NOT_FOUND, refuse
from api.aws.kinesis.resources.policies import check_policy
from api.aws.kinesis.resources.resource import ByResource, change_policy, policy_of
from api.aws.protocol.constraints import REQUIRED
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import OperationOutput
from storage.domain.access.permissions import Action

operations = Operations()


class PutResourcePolicy(ByResource):
    """The policy."""

    policy: Annotated[str | None, REQUIRED] = None


class GetResourcePolicy(ByResource):
    """A stream or a consumer."""


class GetResourcePolicyResult(OperationOutput):
    """Its policy."""

    policy: str


class DeleteResourcePolicy(ByResource):
    """A stream or a consumer."""


@operations.add("PutResourcePolicy", PutResourcePolicy, Action.STREAM_MANAGE)
async def put_policy(call: AwsCall[PutResourcePolicy]) -> None:
    """Store a policy."""
    text = call.request.policy or ""
    await check_policy(call, text)
    await change_policy(call, text)


@operations.add("GetResourcePolicy", GetResourcePolicy, Action.STREAM_LIST)
async def get_policy(call: AwsCall[GetResourcePolicy]) -> GetResourcePolicyResult:
    """Return the stored policy; an empty one if there is none."""
    return GetResourcePolicyResult(await policy_of(call) or "{}")


@operations.add("DeleteResourcePolicy", DeleteResourcePolicy, Action.STREAM_MANAGE)
async def delete_policy(call: AwsCall[DeleteResourcePolicy]) -> None:
    """Delete the stored policy."""
    if await policy_of(call) is None:
        refuse(
            RESOURCE_NOT_FOUND,
            f"No resource policy found for resource ARN {call.request.resource_arn}.",
        )
    await change_policy(call, None)
