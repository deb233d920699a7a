"""Pages of mirrors: lag, and how far each stream and shard is."""

import asyncio

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.pages._shared import page_by_name
from api.admin.rendering import Context, PageContext
from api.native.dependencies import MirrorPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.mirrors.mirror import Mirror
from storage.domain.mirrors.progress import MirrorStatus

router = APIRouter(prefix="/ui/mirrors", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.MIRROR_LIST))


def state_of(mirror: Mirror, status: MirrorStatus) -> tuple[str, str]:
    """Return a mirror's state: the level to show it in, and its label."""
    if mirror.promoted_at_ms is not None:
        return "quiet", "Promoted"
    if mirror.spec.paused:
        return "quiet", "Paused"
    if status.failures:
        return "bad", "Failing"
    return ("ok", "Active") if status.shards or status.queues else ("quiet", "Waiting")


def _as_of_ms(mirror: Mirror, context: PageContext) -> int:
    """Return the time that a mirror's lag refers to: that of its promotion, or now."""
    return mirror.promoted_at_ms or context.storage.mirrors.now_ms()


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of mirrors that begin with `part`."""
    mirrors = await storage.mirrors.list_mirrors(namespace, prefix=part)
    return [mirror.name.name for mirror in mirrors]


@router.get("", dependencies=[SEE])
async def list_mirrors(context: Context, q: Words = "", after: Words = "") -> Response:
    """List the mirrors of the namespace that the caller may see."""
    engine = context.storage.mirrors
    mirrors, next_name = await page_by_name(
        context, engine.list_mirrors, Action.MIRROR_LIST, q, after
    )
    statuses = await asyncio.gather(*map(engine.status, mirrors))
    rows = [
        (mirror, status, state_of(mirror, status), _as_of_ms(mirror, context))
        for mirror, status in zip(mirrors, statuses, strict=True)
    ]
    return context.render(
        "mirrors.html",
        live=True,
        rows=rows,
        q=q,
        after=after,
        more=next_name,
    )


@router.get("/{mirror}", dependencies=[SEE])
async def show_mirror(context: Context, mirror: MirrorPath) -> Response:
    """Show a mirror, and how far each of its shards and queues is."""
    engine = context.storage.mirrors
    stored = await engine.get(mirror)
    status = await engine.status(stored)
    return context.render(
        "mirror.html",
        live=True,
        mirror=stored,
        status=status,
        state=state_of(stored, status),
        as_of_ms=_as_of_ms(stored, context),
    )
