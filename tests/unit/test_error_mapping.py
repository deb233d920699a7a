"""Wire behaviour of every error code: one row a code, one column a protocol."""

import json

import pytest

from api.aws.kinesis.errors import as_kinesis_error
from api.aws.kinesis.errors import translate as kinesis_error
from api.aws.protocol.errors import AwsError, AwsFault
from api.aws.sqs.errors import translate as sqs_error
from api.aws.sts.service import translate as sts_error
from api.native.problems import problem, status_of_category
from storage.domain.access.audit import UNKNOWN, outcome_of
from storage.domain.errors import ErrorCategory, ErrorCode, MillstreamError, error_types

# code, REST status, retryable, SQS, Kinesis, STS, outcome in the audit log
ANSWERS = """
validation_failed        422  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
match_invalid            422  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
message_too_large        413  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
batch_too_large          413  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
invalid_cursor           400  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
receipt_handle_invalid   422  final      400:ReceiptHandleIsInvalid     400:InvalidArgumentException                400:ValidationError     refused
unauthenticated          401  final      403:AccessDenied               400:AccessDeniedException                   403:AccessDenied        refused
forbidden                403  final      403:AccessDenied               400:AccessDeniedException                   403:AccessDenied        refused
key_not_found            404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
key_refused              409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
queue_not_found          404  final      400:NonExistentQueue           400:ResourceNotFoundException               400:ValidationError     refused
stream_not_found         404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
stream_recreated         410  final      400:InvalidParameterValue      400:ResourceNotFoundException               400:ValidationError     refused
stream_read_only         409  final      400:UnsupportedOperation       400:AccessDeniedException                   400:ValidationError     refused
topic_read_only          409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
shard_not_found          404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
message_not_found        404  final      400:InvalidParameterValue      400:ResourceNotFoundException               400:ValidationError     refused
precondition_failed      412  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
receipt_handle_expired   409  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
idempotency_key_reused   422  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
in_flight_limit_reached  429  retryable  403:OverLimit                  400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
message_in_flight        409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
queue_full               429  retryable  403:RequestThrottled           400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
group_not_parked         404  final      400:UnsupportedOperation       400:ResourceNotFoundException               400:ValidationError     refused
purge_in_progress        429  retryable  403:PurgeQueueInProgress       400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
move_refused             409  final      400:InvalidParameterValue      400:ResourceInUseException                  400:ValidationError     refused
move_not_found           404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
stream_busy              409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
record_not_found         404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
offset_expired           410  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
offset_out_of_range      416  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
offset_mismatch          412  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
fence_mismatch           412  final      400:UnsupportedOperation       400:ValidationException                     400:ValidationError     refused
shard_closed             409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
producer_fenced          409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
sequence_out_of_order    409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
duplicate_forgotten      409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
too_many_producers       429  retryable  403:RequestThrottled           400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
group_not_found          404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
member_unknown           404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
stale_generation         409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
group_full               409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
bookmark_not_found       404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
archive_behind           429  retryable  403:RequestThrottled           400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
archive_damaged          500  final      500:InternalFailure            500:InternalFailureException                500:InternalFailure     failed
archive_off              409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
job_not_found            404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
socket_not_found         404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
job_refused              409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
view_not_found           404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
view_revision_not_found  404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
view_plan_pending        503  retryable  503:ServiceUnavailable         503:ServiceUnavailableException             503:ServiceUnavailable  failed
view_sources_pending     503  retryable  503:ServiceUnavailable         503:ServiceUnavailableException             503:ServiceUnavailable  failed
view_sources_untracked   409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
view_history_expired     410  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
view_behind              503  retryable  503:ServiceUnavailable         503:ServiceUnavailableException             503:ServiceUnavailable  failed
query_failed             422  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
webhook_not_found        404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
delivery_not_found       404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
payload_gone             410  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
webhook_busy             429  retryable  403:RequestThrottled           400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
source_not_found         404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
topic_not_found          404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
route_not_found          404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
routes_limit             409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
unroutable               422  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
route_cycle              422  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
route_owned              409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
fan_out_too_large        413  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
request_not_found        404  final      400:NonExistentQueue           400:ResourceNotFoundException               400:ValidationError     refused
reply_too_late           409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
reply_taken              409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
mirror_not_found         404  final      404:ResourceNotFoundException  400:ResourceNotFoundException               400:ValidationError     refused
source_paused            503  retryable  503:ServiceUnavailable         503:ServiceUnavailableException         503:ServiceUnavailable  failed
signature_rejected       401  final      403:AccessDenied               400:AccessDeniedException                   403:AccessDenied        refused
outbox_full              429  retryable  403:RequestThrottled           400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
namespace_not_found      404  final      403:AccessDenied               400:AccessDeniedException                   403:AccessDenied        refused
namespace_in_use         409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
quota_exceeded           429  retryable  403:RequestThrottled           400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
quota_too_small          413  final      400:InvalidParameterValue      400:InvalidArgumentException                400:ValidationError     refused
quota_reached            409  final      403:OverLimit                  400:LimitExceededException                  400:ValidationError     refused
backlog_full             429  retryable  403:RequestThrottled           400:ProvisionedThroughputExceededException  503:ServiceUnavailable  refused
secrets_off              409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
secret_unreadable        500  final      500:InternalFailure            500:InternalFailureException                500:InternalFailure     failed
storage_unavailable      503  retryable  503:ServiceUnavailable         503:ServiceUnavailableException             503:ServiceUnavailable  failed
storage_full             503  retryable  503:ServiceUnavailable         503:ServiceUnavailableException             503:ServiceUnavailable  failed
storage_busy             503  retryable  503:ServiceUnavailable         400:ProvisionedThroughputExceededException  503:ServiceUnavailable  failed
not_enough_replicas      503  retryable  503:ServiceUnavailable         503:ServiceUnavailableException             503:ServiceUnavailable  failed
replica_set_refused      409  final      400:UnsupportedOperation       400:ResourceInUseException                  400:ValidationError     refused
storage_timeout          504  retryable  500:InternalFailure            500:InternalFailureException                500:InternalFailure     unknown
"""
ROWS = {row.split()[0]: tuple(row.split()[1:]) for row in ANSWERS.strip().splitlines()}


def answers_of(error: MillstreamError) -> tuple[str, ...]:
    return (
        str(problem(error, instance="/", request_id="").status),
        "retryable" if error.code.retryable else "final",
        aws_answer(sqs_error(error)),
        aws_answer(as_kinesis_error(kinesis_error(error))),
        aws_answer(sts_error(error)),
        outcome_of(error).split(":")[0],
    )


def aws_answer(error: AwsError) -> str:
    name = error.fault.code.removeprefix("AWS.SimpleQueueService.")
    return f"{error.fault.status}:{name}"


def test_table_has_every_error_code():
    assert ROWS.keys() == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_error_code_is_answered_as_documented(code):
    assert answers_of(error_types()[code]()) == ROWS[code]


@pytest.mark.parametrize("category", ErrorCategory)
def test_code_without_override_is_answered_by_category(category):
    """A code added to its declaration alone has an answer in each protocol."""
    code = new_code(category)
    error = type("NewError", (MillstreamError,), {"code": code, "__doc__": "New."})()

    assert problem_answer(error) == (status_of_category(category), category.retryable)
    assert {fault.sender for fault in aws_faults(error)} == {is_client_error(category)}
    assert outcome_of(error) in (UNKNOWN, f"failed:{code}", f"refused:{code}")


def new_code(category: ErrorCategory) -> ErrorCode:
    code = str.__new__(ErrorCode, "new_code")
    code._value_, code._name_, code.category = "new_code", "NEW_CODE", category
    return code


def problem_answer(error: MillstreamError) -> tuple[int, bool]:
    body = json.loads(problem(error, instance="/", request_id="").body)
    assert body["title"] == "New code"
    return body["status"], body["retryable"]


def aws_faults(error: MillstreamError) -> list[AwsFault]:
    kinesis = as_kinesis_error(kinesis_error(error))
    return [sqs_error(error).fault, kinesis.fault]


def is_client_error(category: ErrorCategory) -> bool:
    return status_of_category(category) < 500
