"""Security Token Service, limited to GetCallerIdentity.

The Kinesis Producer Library builds stream ARNs from its answer before it sends anything, and other programs queue URLs
and ARNs. No temporary keys are issued: the other operations are unknown.
"""

from typing import Any
from urllib.parse import quote

from api.aws.protocol.errors import (
    ACCESS_DENIED,
    AwsError,
    AwsFault,
    ErrorTranslation,
)
from api.aws.protocol.service import (
    AwsCall,
    Operation,
    Operations,
    QuotaCost,
    Service,
    operations_by_name,
)
from api.aws.protocol.shapes import Input, OperationOutput
from storage.domain.errors import ErrorCode, MillstreamError, QuotaExceeded

THROTTLING = AwsFault("Throttling", "Throttling")
TRANSLATION = ErrorTranslation(codes={ErrorCode.NAMESPACE_NOT_FOUND: ACCESS_DENIED})

operations = Operations()


class GetCallerIdentity(Input):
    """Input without members."""


class GetCallerIdentityResult(OperationOutput):
    """The caller's identity.

    `account`: the namespace's, 12 digits. `user_id`: the id of the key pair.
    """

    user_id: str
    account: str
    arn: str


@operations.add("GetCallerIdentity", GetCallerIdentity, None)
async def get_caller_identity(call: AwsCall[GetCallerIdentity]) -> GetCallerIdentityResult:
    """Return the caller: a user named after its key pair, or in open mode the account's root."""
    account, caller = await call.account_id(), call.principal
    name = f"user/{quote(caller.name, safe='@')}" if call.guarded else "root"
    return GetCallerIdentityResult(
        caller.credential or account, account, f"arn:aws:iam::{account}:{name}"
    )


def translate(error: MillstreamError) -> AwsError:
    """Translate an engine's error; a namespace lookup can raise few."""
    return AwsError(TRANSLATION.fault_of(error.code), error.detail)


def quota_cost_of(_: Operation, __: Any) -> QuotaCost:
    """Return the cost of a call, which concerns no resource."""
    return QuotaCost("")


def throttled(_: Operation, error: QuotaExceeded) -> AwsError:
    """Return the throttling error, after which SDKs retry."""
    return AwsError(THROTTLING, error.detail)


STS = Service(
    target="AWSSecurityTokenServiceV20110615",
    json_type="application/x-amz-json-1.1",
    namespace="https://sts.amazonaws.com/doc/2011-06-15/",
    operations=operations_by_name(operations),
    translate=translate,
    quota_cost_of=quota_cost_of,
    throttled=throttled,
)
