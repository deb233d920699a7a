"""Pages of sources: counters, what waits for the target, and rejected requests."""

import asyncio

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.pages._shared import page_by_name
from api.admin.rendering import Context
from api.native.dependencies import SourcePath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.sources.source import InboundSource, SourceCounts, WebhookProvider

router = APIRouter(prefix="/ui/sources", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.SOURCE_LIST))


def state_of(source: InboundSource, counts: SourceCounts, failure: str) -> tuple[str, str]:
    """Return a source's state: the level to show it in, and its label."""
    if failure and counts.waiting:
        return "bad", "Blocked"
    if source.spec.paused:
        return "quiet", "Paused"
    rejected, accepted = counts.last_rejected_at_ms or 0, counts.last_accepted_at_ms or 0
    return ("warn", "Rejecting") if rejected > accepted else ("ok", "Active")


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of sources that begin with `part`."""
    sources = await storage.sources.list_sources(namespace, prefix=part)
    return [source.name.name for source in sources]


@router.get("", dependencies=[SEE])
async def list_sources(context: Context, q: Words = "", after: Words = "") -> Response:
    """List the sources of the namespace that the caller may see."""
    transfer = context.storage.source_transfer
    list_sources = context.storage.sources.list_sources
    sources, next_name = await page_by_name(context, list_sources, Action.SOURCE_LIST, q, after)
    counted = await asyncio.gather(*map(transfer.counts, sources))
    rows = [
        (source, counts, state_of(source, counts, transfer.failure_of(source)))
        for source, counts in zip(sources, counted, strict=True)
    ]
    return context.render(
        "sources.html",
        live=True,
        rows=rows,
        q=q,
        after=after,
        more=next_name,
        providers=list(WebhookProvider),
    )


@router.get("/{source}", dependencies=[SEE])
async def show_source(context: Context, source: SourcePath) -> Response:
    """Show a source, and the last requests that it rejected."""
    storage = context.storage
    is_manager = context.may(Action.SOURCE_MANAGE, source.name)
    stored = await (storage.sources.get_with_secrets if is_manager else storage.sources.get)(source)
    counts, failures = await asyncio.gather(
        storage.source_transfer.counts(stored),
        storage.source_transfer.failures(stored),
    )
    failure = storage.source_transfer.failure_of(stored)
    return context.render(
        "source.html",
        live=True,
        source=stored,
        counts=counts,
        failures=failures,
        failure=failure,
        state=state_of(stored, counts, failure),
        token=stored.tokens[0].value if is_manager else None,
    )
