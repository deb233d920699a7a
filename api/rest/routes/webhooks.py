"""Webhooks: configuration, secrets, and re-enabling."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import Body, Depends, Response

from api.native.dependencies import StorageDep, WebhookPath, may
from api.native.examples import AT, CREATED, LATER, Example, Repeat
from api.native.fields import rfc3339, to_ms
from api.rest.conditional_requests import etag
from api.rest.definition_router import JSON_ONLY, definition_router
from api.rest.noun import Noun, Schemas, Verbs, verbs_of
from api.rest.schemas.webhook import (
    RotateIn,
    SecretOut,
    WebhookChanged,
    WebhookConfig,
    WebhookOut,
    WebhookPage,
    WebhookStored,
)
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.definitions import ANY_VERSION
from storage.domain.names import WebhookName
from storage.domain.webhooks import SourceKind, Webhook, WebhookSpec
from storage.webhooks.engine import PutWebhook, Webhooks

MANAGE = Depends(may(Action.WEBHOOK_MANAGE))
Rotation = Annotated[RotateIn, Body(default_factory=RotateIn)]


def _authorise(storage: Storage, principal: Principal, _: object, spec: WebhookSpec) -> None:
    """Require permission to consume the source and write to the target. Raises Forbidden."""
    consume = {
        SourceKind.QUEUE: Action.QUEUE_RECEIVE,
        SourceKind.GROUP: Action.GROUP_COMMIT,
    }[spec.source.kind]
    authorise, namespace = storage.authorizer.authorise, principal.namespace
    authorise(principal, consume, f"{namespace}/{spec.source.name}")
    if spec.dead_letter_queue is not None:
        authorise(principal, Action.QUEUE_SEND, f"{namespace}/{spec.dead_letter_queue}")


async def _in_force(storage: Storage, webhook: Webhook) -> Mapping[str, Any]:
    return {"in_force": await storage.webhooks.wait_until_in_force(webhook)}


async def _put_fields(storage: Storage, put: PutWebhook, dry_run: bool) -> Mapping[str, Any]:
    """Return the secret, which is not valid after a dry run, and whether it is in force."""
    if dry_run:
        return {"secret": None, "in_force": False}
    secret = None if put.secret is None else put.secret.value
    return {"secret": secret, **await _in_force(storage, put.definition)}


async def _delete(webhooks: Webhooks, name: WebhookName, if_match: int | None) -> None:
    """Delete a webhook after its requests in progress have ended. Raises RouteOwned."""
    name.check_is_free()
    paused = await webhooks.pause(name, paused=True, if_match=if_match)
    await webhooks.wait_until_in_force(paused)
    is_version = if_match not in (None, ANY_VERSION)
    await webhooks.delete(name, if_match=paused.version if is_version else if_match)


def _verbs(storage: Storage, _: Principal) -> Verbs:
    webhooks = storage.webhooks
    return verbs_of(webhooks, delete=partial(_delete, webhooks), list=webhooks.list_webhooks)


WEBHOOKS = Noun(
    name="webhook",
    path=WebhookPath,
    schemas=Schemas(
        WebhookOut, WebhookConfig, WebhookStored, page=WebhookPage, changed=WebhookChanged
    ),
    body_required=True,
    verbs=_verbs,
    authorise=_authorise,
    put_fields=_put_fields,
    pause_fields=_in_force,
    descriptions={
        "put": """Create a webhook for a queue or a consumer group, or replace its configuration.

            When the webhook is created, the response contains the signing secret, in the format of Standard Webhooks. Whether it is
            paused or disabled does not change. With `If-None-Match: *`, an existing webhook is not changed: the response is 412,
            with the webhook (`current`) and the requested fields that differ from it (`changes`). The response waits until no deliverer sends by the
            former configuration (`in_force`).
            """,
        "get": "Show the configuration and health of a webhook. The ETag covers the configuration only.",
        "pause": """Pause deliveries. Messages and records wait in their queue or stream.

            The response waits until the requests in progress have ended (`in_force`).
            """,
        "resume": "Resume deliveries. A webhook that the service has disabled stays disabled.",
        "delete": """Delete a webhook, its secrets and its log. The queue or group is kept.

            It is paused first, until its requests in progress have ended.
            """,
        "list": "List webhooks by name.",
    },
)
router = definition_router(WEBHOOKS)


@router.post("/{webhook}/secret", dependencies=[MANAGE, JSON_ONLY])
async def rotate_webhook_secret(
    webhook: WebhookPath,
    storage: StorageDep,
    rotation: Rotation,
) -> SecretOut:
    """Create a new signing secret.

    The previous secret also signs deliveries for the overlap period, so that no delivery is rejected. The response waits
    until no deliverer sends without the new secret (`in_force`).
    """
    secret, old_until_ms, rotated = await storage.webhooks.rotate(
        webhook, to_ms(rotation.overlap_seconds)
    )
    return SecretOut(
        secret=secret.value,
        created_at=rfc3339(secret.created_at_ms),
        old_secret_expires_at=None if old_until_ms is None else rfc3339(old_until_ms),
        in_force=await storage.webhooks.wait_until_in_force(rotated),
    )


@router.post("/{webhook}/enable", dependencies=[MANAGE])
async def enable_webhook(
    webhook: WebhookPath, storage: StorageDep, response: Response
) -> WebhookChanged:
    """Enable a webhook that the service has disabled, or resume a paused one.

    Shards waiting for a retry are retried immediately.
    """
    enabled = await storage.webhooks.enable(webhook)
    response.headers["etag"] = etag(enabled.version)
    return WebhookChanged.from_domain(enabled, **await _in_force(storage, enabled))


# Examples of the OpenAPI document

_HOOK_HEALTH: dict[str, Any] = {
    "state": "active",
    "disabled_reason": None,
    "disabled_at": None,
    "failing_since": None,
    "last_success_at": LATER,
    "last_failure_at": None,
    "last_failure": "",
    "delivered": 7,
    "failed": 0,
    "blocked": [],
}
_HOOK = {
    "name": "shop",
    "source": "queue:orders",
    "url": "https://shop.example/hooks/orders",
    "header_names": ["authorization"],
    "credentials": None,
    "format": "body",
    "timeout_seconds": 1,
    "rate": None,
    "in_flight_max": 10,
    "retry_seconds": [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
    "on_failure": "block",
    "dead_letter_queue": None,
    "disable_after_seconds": 432000,
    "log_retention_seconds": 259200,
    "match": None,
    "paused": False,
    "enabled": True,
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
    "health": _HOOK_HEALTH,
}
_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="  # noqa: S105  an example

EXAMPLES = {
    "put_webhook": Example(
        "/v1/webhooks/shop",
        {
            "source": "queue:orders",
            "url": "https://shop.example/hooks/orders",
            "headers": {"authorization": "Bearer 7"},
            "timeout_seconds": 1,
        },
        201,
        {**_HOOK, **CREATED, "secret": _SECRET, "in_force": True},
    ),
    "get_webhook": Example("/v1/webhooks/shop", answer=_HOOK),
    "list_webhooks": Example(
        "/v1/webhooks?prefix=sh", answer={"items": [_HOOK], "next_cursor": None}
    ),
    "rotate_webhook_secret": Example(
        "/v1/webhooks/shop/secret",
        {"overlap_seconds": 86400},
        answer={
            "secret": _SECRET,
            "created_at": AT,
            "old_secret_expires_at": LATER,
            "in_force": True,
        },
    ),
    "pause_webhook": Example(
        "/v1/webhooks/shop/pause",
        answer={
            **_HOOK,
            "paused": True,
            "enabled": False,
            "version": 3,
            "changed_at": LATER,
            "health": {**_HOOK_HEALTH, "state": "paused"},
            "in_force": True,
        },
    ),
    "resume_webhook": Example(
        "/v1/webhooks/shop/pause",
        answer={**_HOOK, "version": 4, "changed_at": LATER, "in_force": True},
    ),
    "enable_webhook": Example(
        "/v1/webhooks/shop/enable",
        answer={**_HOOK, "version": 3, "in_force": True},
        repeat=Repeat.SAFE,
    ),
    "delete_webhook": Example("/v1/webhooks/shop", status=204),
}
