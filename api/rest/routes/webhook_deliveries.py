"""Delivery log of a webhook, resends and test events."""

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Body, Depends, Path, Query, Request
from pydantic import AwareDatetime

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, encode_cursor, page_of
from api.native.dependencies import Cursor, Limit, StorageDep, WebhookPath, may, require_json
from api.native.examples import AT, LATER, MESSAGE_ID, Example
from api.native.fields import moment_ms
from api.rest.schemas.webhook import (
    AttemptOut,
    DeliveryOut,
    DeliveryPage,
    ResendConfig,
    ResendsOut,
)
from consumers.webhooks.manual_delivery import Requested
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.webhooks import AttemptOutcome, DeliveryFilter, DeliveryStatus

router = APIRouter(prefix="/v1/webhooks/{webhook}", tags=["webhooks"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.WEBHOOK_MANAGE))
SEE = Depends(may(Action.WEBHOOK_LIST))
DeliveryId = Annotated[
    str, Path(description="`webhook-id` of the delivery.", pattern=r"^[A-Za-z0-9_-]{1,128}$")
]


def requested_of(request: Request) -> Requested:
    """Return the sender of manual deliveries."""
    requested: Requested = request.app.state.requested
    return requested


RequestedDep = Annotated[Requested, Depends(requested_of)]


@router.get("/deliveries", dependencies=[SEE])
async def list_deliveries(
    webhook: WebhookPath,
    storage: StorageDep,
    status: Annotated[DeliveryStatus | None, Query()] = None,
    message: Annotated[
        str | None, Query(description="Only the delivery with this `webhook-id`.", max_length=128)
    ] = None,
    from_: Annotated[
        AwareDatetime | None,
        Query(alias="from", description="First attempt at or after this time."),
    ] = None,
    to: Annotated[
        AwareDatetime | None, Query(description="First attempt before this time.")
    ] = None,
    response_status: Annotated[
        int | None, Query(ge=100, le=599, description="HTTP status of the last attempt.")
    ] = None,
    outcome: Annotated[
        AttemptOutcome | None, Query(description="Outcome of the last attempt.")
    ] = None,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> DeliveryPage:
    """List deliveries and their attempts, newest first, including pending ones."""
    stored = await storage.webhooks.get(webhook)
    about = ("deliveries", stored.webhook_id, status or "", message or "")
    after = decode_cursor(cursor, about, tuple[int, str]) if cursor else None
    deliveries = await storage.deliveries.page(
        stored,
        DeliveryFilter(
            status=status,
            event_id=message,
            response_status=response_status,
            outcome=outcome,
            from_ms=_optional_ms(from_),
            to_ms=_optional_ms(to),
        ),
        after=after,
        limit=limit + 1,
    )
    page = page_of(
        deliveries, limit, about, lambda delivery: (delivery.first_at_ms, delivery.event_id)
    )
    return DeliveryPage(
        items=[DeliveryOut.from_domain(delivery) for delivery in page.items],
        next_cursor=page.next_cursor,
    )


def _optional_ms(moment: datetime | None) -> int | None:
    return None if moment is None else moment_ms(moment)


@router.post("/deliveries/resends", dependencies=[MANAGE, Depends(require_json)])
async def resend_deliveries(
    webhook: WebhookPath,
    storage: StorageDep,
    requested: RequestedDep,
    config: Annotated[ResendConfig, Body(default_factory=ResendConfig)],
) -> ResendsOut:
    """Resend deliveries that match, newest first, or count them with `dry_run`.

    A call takes 15 seconds at most, apart from its last deliveries: continue with `next_cursor` until it is null. Deliveries keep
    their `webhook-id`, by which receivers recognize what they have.
    """
    stored = await storage.webhooks.get(webhook)
    delivery_filter = config.to_domain()
    if config.dry_run:
        matched = await storage.deliveries.count(stored, delivery_filter)
        return ResendsOut.of([], None).model_copy(update={"matched": matched})
    about = ("resends", stored.webhook_id, msgspec.json.encode(delivery_filter).decode())
    after = decode_cursor(config.cursor, about, tuple[int, str]) if config.cursor else None
    resends = await requested.resend_matching(
        webhook, delivery_filter, after=after, limit=config.deliveries_max
    )
    next_cursor = None if resends.after is None else encode_cursor(about, resends.after)
    return ResendsOut.of(resends.attempts, next_cursor)


@router.post("/deliveries/{delivery}/resends", dependencies=[MANAGE])
async def resend_delivery(
    webhook: WebhookPath, delivery: DeliveryId, requested: RequestedDep
) -> AttemptOut:
    """Resend a delivery now under its `webhook-id`, and return the result.

    Deliveries that succeeded can be resent too. A message that is waiting for its next attempt is removed from its queue
    if this one succeeds.
    """
    return AttemptOut.from_domain(await requested.resend(webhook, delivery))


@router.post("/tests", dependencies=[MANAGE])
async def test_webhook(webhook: WebhookPath, requested: RequestedDep) -> AttemptOut:
    """Send a signed test event, even from a disabled webhook, and return the result."""
    return AttemptOut.from_domain(await requested.test(webhook))


# Examples of the OpenAPI document

_ATTEMPT = {
    "at": AT,
    "outcome": "server_error",
    "status": 500,
    "duration_seconds": 0.25,
    "error": "500",
    "response": "no room",
    "resent": False,
}
_DELIVERY = {
    "id": MESSAGE_ID,
    "status": "retrying",
    "attempts": 1,
    "last_attempts": [_ATTEMPT],
    "first_at": AT,
    "last_at": AT,
    "next_at": LATER,
    "sent_at": AT,
    "shard": None,
    "offset": 7,
}

EXAMPLES = {
    "test_webhook": Example(
        "/v1/webhooks/shop/tests",
        answer={
            **_ATTEMPT,
            "outcome": "connection",
            "status": None,
            "error": "no connection: 'shop.example' cannot be resolved",
            "response": "",
        },
    ),
    "list_deliveries": Example(
        "/v1/webhooks/shop/deliveries?status=retrying",
        answer={"items": [_DELIVERY], "next_cursor": None},
    ),
    "resend_deliveries": Example(
        "/v1/webhooks/shop/deliveries/resends",
        {"status": "failed", "response_status": 503, "dry_run": True},
        answer={"matched": 12, "delivered": 0, "failed": 0, "skipped": 0, "next_cursor": None},
    ),
    "resend_delivery": Example(
        f"/v1/webhooks/shop/deliveries/{MESSAGE_ID}/resends",
        answer={**_ATTEMPT, "outcome": "delivered", "status": 204, "error": "", "resent": True},
    ),
}
