"""DescribeLimits, DescribeAccountSettings and UpdateAccountSettings."""

from typing import Annotated, Any

import msgspec

from api.aws.kinesis.call_helpers import charge_control_call, now_ms
from api.aws.kinesis.default_throughput import ON_DEMAND_STREAMS_MAX, SHARDS_OF_AN_ACCOUNT
from api.aws.kinesis.descriptions import mode_of
from api.aws.kinesis.shapes import ON_DEMAND
from api.aws.kinesis.timestamps import seconds
from api.aws.protocol.constraints import REQUIRED, bounds
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput
from storage.domain import limits
from storage.domain.access.permissions import Action

operations = Operations()

ENABLED, DISABLED = "ENABLED", "DISABLED"
_COMMITMENT = "kinesis.minimum_throughput_billing_commitment"


class DescribeLimits(Input):
    """Input without members."""


class DescribeLimitsResult(OperationOutput):
    """The account's usage, and its limits at Amazon."""

    shard_limit: int
    open_shard_count: int
    on_demand_stream_count: int
    on_demand_stream_count_limit: int
    channel_count: int
    channel_count_limit: int


class CommitmentIn(Input):
    """Setting of a commitment to a throughput."""

    status: Annotated[str | None, bounds(choices=(ENABLED, DISABLED)), REQUIRED] = None


class CommitmentOut(OperationOutput):
    """Status of the commitment, with the time when it started or ended."""

    status: str
    started_at: float | None = None
    ended_at: float | None = None
    earliest_allowed_end_at: float | None = None


class DescribeAccountSettings(Input):
    """Input without members."""


class UpdateAccountSettings(Input):
    """Settings to change."""

    minimum_throughput_billing_commitment: Annotated[CommitmentIn | None, REQUIRED] = None


class AccountSettingsResult(OperationOutput):
    """Current settings."""

    minimum_throughput_billing_commitment: CommitmentOut


@operations.add("DescribeLimits", DescribeLimits, Action.STREAM_LIST)
async def describe_limits(call: AwsCall[DescribeLimits]) -> DescribeLimitsResult:
    """Count the account's shards; the limits are Amazon's, and not enforced."""
    namespace = call.principal.namespace
    call.authorise(f"{namespace}/*")
    await charge_control_call(call, "DescribeLimits", 1, None)
    shards = on_demand = 0
    after = ""
    while True:
        page = await call.storage.catalog.list_streams(
            namespace, after=after, limit=limits.PAGE_ITEMS_MAX
        )
        shards += sum([len(stream.open_shards) for stream in page])
        on_demand += sum([mode_of(stream.spec) == ON_DEMAND for stream in page])
        if len(page) < limits.PAGE_ITEMS_MAX:
            break
        after = page[-1].name.name
    return DescribeLimitsResult(
        SHARDS_OF_AN_ACCOUNT, shards, on_demand, ON_DEMAND_STREAMS_MAX, 0, 0
    )


@operations.add("DescribeAccountSettings", DescribeAccountSettings, Action.STREAM_LIST)
async def describe_settings(call: AwsCall[DescribeAccountSettings]) -> AccountSettingsResult:
    """Return the account's settings."""
    call.authorise(f"{call.principal.namespace}/*")
    await charge_control_call(call, "DescribeAccountSettings", 5, None)
    return AccountSettingsResult(_commitment(await _settings(call)))


@operations.add("UpdateAccountSettings", UpdateAccountSettings, Action.STREAM_MANAGE)
async def update_settings(call: AwsCall[UpdateAccountSettings]) -> AccountSettingsResult:
    """Store the settings, which have no effect: nothing is billed here."""
    namespace = call.principal.namespace
    call.authorise(f"{namespace}/*")
    await charge_control_call(call, "UpdateAccountSettings", 5, None)
    commitment = call.request.minimum_throughput_billing_commitment
    status = str(commitment.status if commitment else DISABLED)
    settings = await _settings(call)
    if settings.get("status", DISABLED) != status:
        moment = "started_at_ms" if status == ENABLED else "ended_at_ms"
        started = {} if status == ENABLED else {"started_at_ms": settings.get("started_at_ms")}
        settings = {"status": status, **started, moment: now_ms(call)}
        await call.account_id()  # the setting's row references the namespace's
        await call.storage.account_settings.put(namespace, _COMMITMENT, settings)
    return AccountSettingsResult(_commitment(settings))


async def _settings(
    call: AwsCall[DescribeAccountSettings] | AwsCall[UpdateAccountSettings],
) -> dict[str, Any]:
    settings = await call.storage.account_settings.get(call.principal.namespace)
    return msgspec.convert(settings.get(_COMMITMENT, {}), dict[str, Any])


def _commitment(settings: dict[str, Any]) -> CommitmentOut:
    started, ended = settings.get("started_at_ms"), settings.get("ended_at_ms")
    return CommitmentOut(
        settings.get("status", DISABLED),
        None if started is None else seconds(started),
        None if ended is None else seconds(ended),
    )
