"""Pages of replays, as REST and the dashboard list them."""

from api.native.cursors import Page, decode_cursor, page_of
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.jobs import JobState
from storage.replays.engine import Replay


async def page_of_replays(
    storage: Storage, principal: Principal, state: JobState | None, cursor: str, limit: int
) -> Page[Replay]:
    """Return a page of the replays that the caller may see, the newest first."""
    about = ("replays", principal.namespace, state or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    replays = await storage.replays.page(
        principal.namespace, state=state, after=after, limit=limit + 1
    )
    return page_of(
        replays,
        limit,
        about,
        lambda replay: (replay.job.created_at_ms, replay.job.job_id),
        lambda replay: principal.policy.allows(Action.REPLAY_LIST, replay.spec.request.stream),
    )
