"""Pages of replays: the list, the progress of one, and creating one after a preview."""

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words
from api.admin.rendering import Context
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import may
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.clock import SystemClock
from storage.domain.errors import JobNotFound
from storage.domain.jobs import JobState, RequestedState
from storage.domain.replays.replay import progress_of
from storage.operations.job_waits import wait_reasons
from storage.replays.engine import Replay

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/replays")

SEE = Depends(may(Action.REPLAY_LIST))
Cursor = Annotated[str, Query(max_length=2_000)]
_CLOCK = SystemClock()


class ReplayProgress(NamedTuple):
    """Progress of a replay: `done` of `whole` offsets.

    `per_second` is the rate since it started; None where it is unknown.
    """

    done: int
    whole: int
    sent: int
    per_second: float | None
    left_ms: float | None

    @classmethod
    def of(cls, replay: Replay, counts: dict[str, Any], now_ms: int) -> "ReplayProgress":
        """Compute the progress from its parts, or from its worker's last report."""
        job = replay.job
        whole = counts.get("records", 0)
        done = min(whole, counts.get("read", 0) + counts.get("expired", 0))
        if job.started_at_ms is None:
            return cls(done, whole, counts.get("sent", 0), None, None)
        took_ms = max(1, (job.ended_at_ms or now_ms) - job.started_at_ms)
        rate = done * limits.SECOND_MS / took_ms
        runs = job.state is JobState.RUNNING and rate > 0
        left_ms = (whole - done) * limits.SECOND_MS / rate if runs else None
        return cls(done, whole, counts.get("sent", 0), rate, left_ms)


class ReplayRow(NamedTuple):
    """A replay as the list shows it."""

    replay: Replay
    progress: ReplayProgress


@router.get("", dependencies=[SEE])
async def list_replays(
    context: Context,
    state: Annotated[JobState | None, Query()] = None,
    cursor: Cursor = "",
    stream: Words = "",
) -> Response:
    """List replays, the newest first. `stream` is the source for a new replay."""
    about = ("replays", context.namespace, state or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    replays = await context.storage.replays.page(
        context.namespace, state=state, after=after, limit=PAGE_ROWS + 1
    )
    page = page_of(
        replays,
        PAGE_ROWS,
        about,
        lambda replay: (replay.job.created_at_ms, replay.job.job_id),
        lambda replay: context.may(Action.REPLAY_LIST, replay.spec.request.stream),
    )
    now_ms = _CLOCK.now_ms()
    return context.render(
        "replay/list.html",
        live=True,
        rows=[
            ReplayRow(item, ReplayProgress.of(item, item.job.progress, now_ms))
            for item in page.items
        ],
        after=page.next_cursor,
        state=state,
        states=list(JobState),
        cursor=cursor,
        stream=stream,
    )


@router.get("/{replay}", dependencies=[SEE])
async def show_replay(context: Context, replay: str) -> Response:
    """Show a replay's progress, part by part.

    Raises JobNotFound, also where the caller may not see it.
    """
    stored = await context.storage.replays.get(context.namespace, replay)
    source = stored.spec.request.stream
    if not context.may(Action.REPLAY_LIST, source):
        raise JobNotFound(f"Replay '{replay}' does not exist.")
    counts = progress_of(stored.parts)
    job = stored.job
    settled = job.state.is_over or job.requested_state is RequestedState.CANCEL
    return context.render(
        "replay/show.html",
        live=not job.state.is_over,
        name=stored.spec.replay_id,
        replay=stored,
        job=job,
        waits_for=(await wait_reasons(context.storage.presence, job)).get(job.job_id),
        spec=stored.spec.request,
        conditions=[one.term for one in stored.spec.request.filter.body],
        counts=counts,
        progress=ReplayProgress.of(stored, counts, _CLOCK.now_ms()),
        can_pause=not settled
        and job.state is not JobState.PAUSED
        and job.requested_state is RequestedState.NONE,
        can_resume=not settled
        and (job.state is JobState.PAUSED or job.requested_state is RequestedState.PAUSE),
        can_cancel=not settled,
        can_retry=job.state is JobState.FAILED,
    )
