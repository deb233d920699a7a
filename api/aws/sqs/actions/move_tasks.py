"""StartMessageMoveTask, CancelMessageMoveTask and ListMessageMoveTasks, based on moves.

A TaskHandle is base64 of JSON that names the move and its source, as Amazon's does.
"""

import base64
import binascii
from typing import Annotated

import msgspec

from api.aws.protocol.errors import AwsError
from api.aws.protocol.service import AwsCall, Operations
from api.aws.protocol.shapes import Input, OperationOutput, named
from api.aws.sqs.call_helpers import arns_of
from api.aws.sqs.errors import RESOURCE_NOT_FOUND, invalid, invalid_value, required
from api.aws.sqs.queues.arns import Arns
from api.aws.sqs.queues.urls import check_arn
from storage.domain.access.permissions import Action
from storage.domain.errors import MoveNotFound, MoveRefused, QueueNotFound
from storage.domain.names import QueueName
from storage.domain.queues.moves import (
    MESSAGE_SOURCE_UNKNOWN,
    QUEUE_NOT_FOUND,
    QUEUE_READ_ONLY,
    Move,
    MoveState,
)

operations = Operations()

PER_SECOND_MAX = 500
RESULTS_MAX = 10
_FAILURES = {
    QUEUE_NOT_FOUND: "AWS.SimpleQueueService.NonExistentQueue",
    QUEUE_READ_ONLY: "AWS.SimpleQueueService.UnsupportedOperation",
    MESSAGE_SOURCE_UNKNOWN: "CouldNotDetermineMessageSource",
}
_REFUSALS = {
    "not_a_dead_letter_queue": "Source queue must be configured as a Dead Letter Queue.",
    "already_running": (
        "There is already a task running. Only one active task is allowed for a source queue arn at a "
        "given time."
    ),
}


class StartMessageMoveTask(Input):
    """A dead-letter queue, the destination of its messages, and the rate."""

    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class StartMessageMoveTaskResult(OperationOutput):
    """The started task."""

    task_handle: str


class CancelMessageMoveTask(Input):
    """A running task."""

    task_handle: str | None = None


class CancelMessageMoveTaskResult(OperationOutput):
    """The number of messages that were moved."""

    approximate_number_of_messages_moved: int


class ListMessageMoveTasks(Input):
    """A queue, and the maximum number of its tasks to list."""

    source_arn: str | None = None
    max_results: int | None = None


class MoveTask(OperationOutput):
    """One task, with its handle while it runs, and its failure if it failed."""

    status: str
    source_arn: str
    approximate_number_of_messages_moved: int
    approximate_number_of_messages_to_move: int
    started_timestamp: int
    task_handle: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    failure_reason: str | None = None


class ListMessageMoveTasksResult(OperationOutput):
    """Tasks, the newest first."""

    results: Annotated[list[MoveTask] | None, named("ListMessageMoveTasksResultEntry")] = None


class TaskHandle(msgspec.Struct, frozen=True, rename="camel"):
    """The content of a task handle."""

    task_id: str
    source_arn: str

    def encode(self) -> str:
        """Encode the handle as clients receive it."""
        return base64.b64encode(msgspec.json.encode(self)).decode()


_decoder = msgspec.json.Decoder(TaskHandle)


@operations.add("StartMessageMoveTask", StartMessageMoveTask, Action.QUEUE_REDRIVE)
async def start_message_move_task(
    call: AwsCall[StartMessageMoveTask],
) -> StartMessageMoveTaskResult:
    """Move a dead-letter queue's messages back to their sources, or to another queue."""
    request = call.request
    arns = await arns_of(call)
    source_arn = required(request.source_arn, "SourceArn")
    source = await _queue(call, source_arn, "SourceArn", arns)
    destination = None
    if request.destination_arn:
        destination = await _queue(
            call, request.destination_arn, "DestinationArn", arns, Action.QUEUE_SEND
        )
    if destination == source:
        raise invalid("The source queue and the destination queue cannot be the same.")
    per_second = request.max_number_of_messages_per_second
    if per_second is not None and not 1 <= per_second <= PER_SECOND_MAX:
        reason = f"Must be between 1 and {PER_SECOND_MAX}, if provided."
        raise invalid_value("MaxNumberOfMessagesPerSecond", per_second, reason)
    try:
        move = await call.storage.moves.start(source, destination, per_second or 0, is_redrive=True)
    except MoveRefused as error:
        raise _refusal(error) from None
    return StartMessageMoveTaskResult(TaskHandle(move.move_id, source_arn).encode())


@operations.add("CancelMessageMoveTask", CancelMessageMoveTask, Action.QUEUE_REDRIVE)
async def cancel_message_move_task(
    call: AwsCall[CancelMessageMoveTask],
) -> CancelMessageMoveTaskResult:
    """Stop a task; moved messages stay moved."""
    handle = _decode(required(call.request.task_handle, "TaskHandle"))
    source = await _queue(call, handle.source_arn, "SourceArn", await arns_of(call))
    try:
        move = await call.storage.moves.get(handle.task_id)
        if move.source != source:  # permission for this queue does not cover another queue's moves
            raise MoveNotFound
        move = await call.storage.moves.cancel(handle.task_id)
    except MoveNotFound:
        raise AwsError(RESOURCE_NOT_FOUND, "Task does not exist.") from None
    except MoveRefused as error:
        raise _refusal(error) from None
    return CancelMessageMoveTaskResult(move.moved)


@operations.add("ListMessageMoveTasks", ListMessageMoveTasks, Action.QUEUE_LIST)
async def list_message_move_tasks(
    call: AwsCall[ListMessageMoveTasks],
) -> ListMessageMoveTasksResult:
    """List a queue's tasks, the newest first."""
    request = call.request
    arns = await arns_of(call)
    source = await _queue(call, required(request.source_arn, "SourceArn"), "SourceArn", arns)
    limit = 1 if request.max_results is None else request.max_results
    if not 1 <= limit <= RESULTS_MAX:
        reason = f"Must be between 1 and {RESULTS_MAX}, if provided."
        raise invalid_value("MaxResults", limit, reason)
    moves = await call.storage.moves.list(source, limit)
    tasks = [_task(move, arns) for move in moves if move.which_dead is None]
    return ListMessageMoveTasksResult(tasks or None)


async def _queue(
    call: AwsCall[StartMessageMoveTask]
    | AwsCall[CancelMessageMoveTask]
    | AwsCall[ListMessageMoveTasks],
    arn: str,
    parameter: str,
    arns: Arns,
    action: Action | None = None,
) -> QueueName:
    """Return the existing queue that an ARN names. Raises AwsError, Forbidden.

    `action`: the permission required, where it is not the call's own.
    """
    check_arn(arn, parameter)
    name = arns.queue(arn)
    try:
        if name is not None:
            call.storage.authorizer.authorise(call.principal, action or call.action, str(name))
            await call.storage.catalog.queue(name)
            return name
    except QueueNotFound:
        pass
    text = f"The resource that you specified for the {parameter} parameter doesn't exist."
    raise AwsError(RESOURCE_NOT_FOUND, text)


def _task(move: Move, arns: Arns) -> MoveTask:
    source_arn = arns.of(move.source.name)
    running = move.state is MoveState.RUNNING
    return MoveTask(
        status=move.state.upper(),
        source_arn=source_arn,
        approximate_number_of_messages_moved=move.moved,
        approximate_number_of_messages_to_move=move.to_move,
        started_timestamp=move.started_at_ms,
        task_handle=TaskHandle(move.move_id, source_arn).encode() if running else None,
        destination_arn=arns.of(move.destination.name) if move.destination else None,
        max_number_of_messages_per_second=move.per_second or None,
        failure_reason=_FAILURES.get(move.failure, move.failure) or None,
    )


def _decode(handle: str) -> TaskHandle:
    try:
        return _decoder.decode(base64.b64decode(handle, validate=True))
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise invalid("Value for parameter TaskHandle is invalid.") from None


def _refusal(error: MoveRefused) -> AwsError:
    return invalid(_REFUSALS.get(error.facts.get("reason", ""), error.detail))
