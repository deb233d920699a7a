"""Pages of webhooks: delivery state, every attempt, and redelivery."""

from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Query, Response

from api.admin.browsing.body_preview import preview
from api.admin.browsing.message_query import parse_time_ms
from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words, first_page
from api.admin.pages._shared import page_by_name
from api.admin.rendering import Context, PageContext
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import WebhookPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.errors import DeliveryNotFound, PayloadGone
from storage.domain.webhooks import (
    AttemptOutcome,
    DeliveryFilter,
    DeliveryStatus,
    Event,
    SourceKind,
    Webhook,
    WebhookDelivery,
)

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


class DeliveryQuery(NamedTuple):
    """Filter of the deliveries of a page, from the URL."""

    status: DeliveryStatus | None
    outcome: AttemptOutcome | None
    response_status: int | None
    since: str

    def to_filter(self) -> DeliveryFilter:
        """Return the filter. Raises ValidationFailed."""
        return DeliveryFilter(
            status=self.status,
            outcome=self.outcome,
            response_status=self.response_status,
            from_ms=parse_time_ms(self.since, "/since"),
        )

    @property
    def link_parameters(self) -> dict[str, Any]:
        """Parameters for links to the same deliveries."""
        return {
            "status": self.status,
            "outcome": self.outcome,
            "code": self.response_status,
            "since": self.since,
        }


def parse_query(
    status: DeliveryStatus | None = None,
    outcome: Literal[""] | AttemptOutcome = "",
    code: Annotated[str, Query(pattern="^([1-5][0-9]{2})?$")] = "",
    since: Words = "",
) -> DeliveryQuery:
    """Parse the URL's parameters."""
    return DeliveryQuery(status, outcome or None, int(code) if code else None, since)


@router.get("/{webhook}", dependencies=[SEE])
async def show_webhook(
    context: Context,
    webhook: WebhookPath,
    query: Annotated[DeliveryQuery, Depends(parse_query)],
    cursor: Cursor = "",
) -> Response:
    """Show a webhook's state, and its deliveries with every attempt."""
    storage = context.storage
    stored = await storage.webhooks.get(webhook)
    about = ("ui", "deliveries", stored.webhook_id, query.status or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    deliveries = await storage.deliveries.page(
        stored, query.to_filter(), after=after, limit=PAGE_ROWS + 1
    )
    rows, last = first_page(deliveries, lambda delivery: (delivery.first_at_ms, delivery.event_id))
    stream = await storage.deliveries.stream_of(stored)
    return context.render(
        "webhook.html",
        live=True,
        webhook=stored,
        state=state_of(stored),
        rows=[(delivery, source_path(stored, stream, delivery)) for delivery in rows],
        query=query,
        statuses=list(DeliveryStatus),
        outcomes=list(AttemptOutcome),
        cursor=cursor,
        more=None if last is None else encode_cursor(about, last),
    )


class SourcePath(NamedTuple):
    """Page of a delivery's message or record: its label, path and parameters."""

    label: str
    path: str
    parameters: dict[str, Any]


def source_path(webhook: Webhook, stream: str, delivery: WebhookDelivery) -> SourcePath | None:
    """Return the page of a delivery's message or record; None if the log has no offset."""
    if delivery.location is None:
        return None
    offset, shard = delivery.location.offset, delivery.location.shard
    if webhook.spec.source.kind is SourceKind.QUEUE:
        path = f"/ui/queues/{webhook.spec.source.name}/messages/{offset}"
        return SourcePath(f"message {offset}", path, {})
    if not stream or shard is None:
        return None
    position = {"at": "offset", "shard": shard, "offset": offset, "see": f"{shard}:{offset}"}
    return SourcePath(f"record {shard}:{offset}", f"/ui/streams/{stream}/browse", position)


@router.get("/{webhook}/deliveries/{event}", dependencies=[SEE])
async def show_delivery(
    context: Context, webhook: WebhookPath, event: str, form: Words = ""
) -> Response:
    """Show a delivery: its payload beside the last response, and its attempts.

    Raises DeliveryNotFound.
    """
    storage = context.storage
    stored = await storage.webhooks.get(webhook)
    delivery = await storage.deliveries.find(stored, event)
    if delivery is None:
        raise DeliveryNotFound(f"The log has no delivery '{event}'.")
    stream = await storage.deliveries.stream_of(stored)
    is_readable = _may_read(context, stored, stream)
    payload = await _event_or_none(storage, stored, event) if is_readable else None
    return context.render(
        "delivery.html",
        live=False,
        webhook=stored,
        delivery=delivery,
        source=source_path(stored, stream, delivery),
        is_readable=is_readable,
        event=payload,
        body=None if payload is None else preview(payload.payload, form),
        last=delivery.last_attempts[-1] if delivery.last_attempts else None,
    )


def _may_read(context: PageContext, webhook: Webhook, stream: str) -> bool:
    """Return whether the caller may see the messages or records of a webhook's source."""
    if webhook.spec.source.kind is SourceKind.QUEUE:
        return context.may(Action.QUEUE_PEEK, webhook.spec.source.name)
    return context.may(Action.STREAM_READ, stream or "*")


async def _event_or_none(storage: Storage, webhook: Webhook, event_id: str) -> Event | None:
    try:
        return (await storage.deliveries.event(webhook, event_id))[1]
    except (DeliveryNotFound, PayloadGone):
        return None
