"""Pages of webhooks: delivery state, every attempt, and redelivery."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words, first_page
from api.admin.pages._shared import page_by_name
from api.admin.rendering import Context
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import WebhookPath, may
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
async def list_webhooks(context: Context, q: Words = "", after: Words = "") -> Response:
    """List the webhooks of the namespace that the caller may see."""
    list_webhooks = context.storage.webhooks.list_webhooks
    webhooks, next_name = await page_by_name(context, list_webhooks, Action.WEBHOOK_LIST, q, after)
    rows = [(webhook, state_of(webhook)) for webhook in webhooks]
    return context.render("webhooks.html", live=True, rows=rows, q=q, after=after, more=next_name)


@router.get("/{webhook}", dependencies=[SEE])
async def show_webhook(
    context: Context,
    webhook: WebhookPath,
    status: Annotated[DeliveryStatus | None, Query()] = None,
    cursor: Cursor = "",
) -> Response:
    """Show a webhook's state, and its deliveries with every attempt."""
    stored = await context.storage.webhooks.get(webhook)
    about = ("ui", "deliveries", stored.webhook_id, status or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    deliveries = await context.storage.deliveries.page(
        stored, status=status, after=after, limit=PAGE_ROWS + 1
    )
    rows, last = first_page(deliveries, lambda delivery: (delivery.first_at_ms, delivery.event_id))
    return context.render(
        "webhook.html",
        live=True,
        webhook=stored,
        state=state_of(stored),
        rows=rows,
        status=status,
        statuses=list(DeliveryStatus),
        cursor=cursor,
        more=None if last is None else encode_cursor(about, last),
    )
