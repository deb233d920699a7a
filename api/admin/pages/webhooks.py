"""Pages of webhooks: delivery state, every attempt, and redelivery."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words
from api.admin.rendering import render
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import PrincipalDep, StorageDep, WebhookPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.webhooks import DeliveryStatus, Webhook

router = APIRouter(prefix="/ui/webhooks", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.WEBHOOK_LIST))
Cursor = Annotated[str, Query()]


def state_of(webhook: Webhook) -> tuple[str, str]:
    """Return a webhook's state: the level to show it in, and its label."""
    if webhook.disabled_at_ms is not None:
        return "bad", "Disabled"
    if webhook.spec.paused:
        return "quiet", "Paused"
    if webhook.health.failing_since_ms is not None:
        return "warn", "Failing"
    return "ok", "Active"


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of webhooks that begin with `part`."""
    webhooks = await storage.webhooks.list_webhooks(namespace, prefix=part)
    return [webhook.name.name for webhook in webhooks]


@router.get("", dependencies=[SEE])
async def list_webhooks(
    request: Request,
    storage: StorageDep,
    principal: PrincipalDep,
    q: Words = "",
    after: Words = "",
) -> Response:
    """List the webhooks of the namespace that the caller may see."""
    webhooks = await storage.webhooks.list_webhooks(
        principal.namespace, prefix=q, after=after, limit=PAGE_ROWS + 1
    )
    seen = [
        (webhook, state_of(webhook))
        for webhook in webhooks[:PAGE_ROWS]
        if principal.policy.allows(Action.WEBHOOK_LIST, webhook.name.name)
    ]
    next_name = webhooks[PAGE_ROWS - 1].name.name if len(webhooks) > PAGE_ROWS else None
    return render(request, "webhooks.html", live=True, rows=seen, q=q, after=after, more=next_name)


@router.get("/{webhook}", dependencies=[SEE])
async def show_webhook(
    request: Request,
    webhook: WebhookPath,
    storage: StorageDep,
    status: Annotated[DeliveryStatus | None, Query()] = None,
    cursor: Cursor = "",
) -> Response:
    """Show a webhook's state, and its deliveries with every attempt."""
    stored = await storage.webhooks.get(webhook)
    about = ("ui", "deliveries", stored.webhook_id, status or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    deliveries = await storage.deliveries.page(
        stored, status=status, after=after, limit=PAGE_ROWS + 1
    )
    page = deliveries[:PAGE_ROWS]
    last = (page[-1].first_at_ms, page[-1].event_id) if len(deliveries) > PAGE_ROWS else None
    return render(
        request,
        "webhook.html",
        live=True,
        webhook=stored,
        state=state_of(stored),
        rows=page,
        status=status,
        statuses=list(DeliveryStatus),
        cursor=cursor,
        more=None if last is None else encode_cursor(about, last),
    )
