"""Back-test job: evaluates a match on all messages of its ranges, piece by piece.

    wave after wave of pieces ──▶ add their results ──▶ save the progress ──▶ done

The messages and matches are fixed when the job is submitted, and the pieces have a fixed order. The progress is the result of the first
`pieces_done` of them, stored in one row, so an attempt that is lost costs the pieces of a wave, and none is counted twice (ADR 0103).

The pieces of a wave are evaluated by Spark tasks, or those of a small back-test in the worker's process, without Spark.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from spark_worker.jobs.spark_tasks import run_tasks, slots
from spark_worker.runtime.fault_points import fault
from spark_worker.runtime.job_context import JobContext, PermanentFailure, TransientFailure
from spark_worker.settings import TaskSettings
from storage.bootstrap import Storage, open_storage
from storage.domain.errors import MillstreamError
from storage.domain.replays.replay import OffsetRange
from storage.domain.topics.back_test import BackTestResult, BackTestSpec
from storage.settings import StorageSettings

_PIECES_PER_TASK = 4  # the progress is saved after some seconds; other jobs then get the slot
_TASK_CONNECTIONS = 2  # to Postgres


class Piece(msgspec.Struct, frozen=True):
    """Piece of a back-test, for a task. `nth`: its place in the order of the job."""

    nth: int
    namespace: str
    spec: BackTestSpec
    within: OffsetRange


class PieceEnd(msgspec.Struct, frozen=True):
    """Result of a piece, or why it has none. `retry`: another attempt may have one."""

    nth: int
    result: BackTestResult = msgspec.field(default_factory=BackTestResult)
    failure: str = ""
    retry: bool = True


EvaluatePieces = Callable[[JobContext, Sequence[Piece]], Iterable[PieceEnd]]

_pieces = msgspec.json.Decoder(Piece)
_ends = msgspec.json.Decoder(PieceEnd)


def run(work: JobContext) -> Mapping[str, Any]:
    """Run a back-test; return its progress at the end."""
    spec = work.spec(BackTestSpec)
    result = msgspec.convert(work.progress, BackTestResult)
    pieces = [
        Piece(nth, work.job.namespace, msgspec.structs.replace(spec, ranges=()), within)
        for nth, within in enumerate(spec.pieces())
    ]
    evaluate, wave = _strategy(work, spec)
    for first in range(work.progress.get("pieces_done", 0), len(pieces), wave):
        for end in evaluate(work, pieces[first : first + wave]):
            result.add(_result_of(end), spec.test.samples_max)
        fault("back_test.before_save")
        work.report(_progress(spec, result, min(first + wave, len(pieces))))
        work.call(work.storage.jobs.save_progress(work.claim, work.progress))
        fault("back_test.after_save")
        work.check()
    return _progress(spec, result, len(pieces))


def _strategy(work: JobContext, spec: BackTestSpec) -> tuple[EvaluatePieces, int]:
    """Return how pieces are evaluated, and how many of them in a wave."""
    if spec.messages < work.limits.replay_small_records:
        return _in_process, 1
    work.require_spark()
    work.acquire_long_slot()
    return _on_spark, _PIECES_PER_TASK * slots(work.spark.sparkContext)


def _progress(spec: BackTestSpec, result: BackTestResult, pieces_done: int) -> dict[str, Any]:
    progress: dict[str, Any] = msgspec.to_builtins(result)
    return progress | {"messages": spec.messages, "pieces_done": pieces_done}


def _result_of(end: PieceEnd) -> BackTestResult:
    if end.failure:
        raise TransientFailure(end.failure) if end.retry else PermanentFailure(end.failure)
    return end.result


def _in_process(work: JobContext, pieces: Sequence[Piece]) -> Iterable[PieceEnd]:
    """Evaluate in the worker's event loop, with its clients."""
    for piece in pieces:
        yield PieceEnd(piece.nth, work.call(_result(work.storage, piece)))


def _on_spark(work: JobContext, pieces: Sequence[Piece]) -> Iterable[PieceEnd]:
    """Evaluate in Spark tasks; return the results in the order of the job."""
    settings = TaskSettings(work.settings.storage)
    tasks = -(-len(pieces) // _PIECES_PER_TASK)
    try:
        ends = run_tasks(work, settings, pieces, _evaluate_in_task, tasks)
    except Exception:
        work.check()  # raises JobStopped if the tasks failed because they were stopped
        raise
    fault("back_test.evaluated")
    return sorted(map(_ends.decode, ends), key=lambda end: end.nth)


def _evaluate_in_task(settings: TaskSettings, items: Iterable[bytes]) -> list[bytes]:
    """Evaluate pieces in a Spark process, with its own event loop and clients."""
    storage = settings.storage().model_copy(update={"postgres_connections_max": _TASK_CONNECTIONS})
    ends = asyncio.run(_evaluate(storage, [_pieces.decode(item) for item in items]))
    return [msgspec.json.encode(end) for end in ends]


async def _evaluate(settings: StorageSettings, pieces: Sequence[Piece]) -> list[PieceEnd]:
    fault("back_test.in_task")
    try:
        async with open_storage(settings) as storage:
            return [PieceEnd(piece.nth, await _result(storage, piece)) for piece in pieces]
    except MillstreamError as error:
        return [PieceEnd(pieces[0].nth, failure=error.detail, retry=error.code.retryable)]


async def _result(storage: Storage, piece: Piece) -> BackTestResult:
    return await storage.back_tests.evaluate(piece.namespace, piece.spec, piece.within)
