"""Webhooks: configuration, secrets, and re-enabling."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import (
    Cursor,
    Limit,
    Prefix,
    PrincipalDep,
    StorageDep,
    WebhookPath,
    may,
    require_json,
)
from api.native.examples import AT, CREATED, LATER, Example
from api.native.fields import rfc3339, to_ms
from api.native.former_names import note_former_members
from api.rest.conditional_requests import (
    IfMatch,
    IfNoneMatch,
    etag,
    expected_version,
    is_create_only,
    note_outcome,
)
from api.rest.definition_changes import DryRun, comparing
from api.rest.schemas.webhook import (
    HIDDEN_VALUE,
    RotateIn,
    SecretOut,
    WebhookChanged,
    WebhookConfig,
    WebhookOut,
    WebhookPage,
    WebhookStored,
)
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import PreconditionFailed, WebhookNotFound
from storage.domain.webhooks import SourceKind, Webhook, WebhookSpec

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.WEBHOOK_MANAGE))
SEE = Depends(may(Action.WEBHOOK_LIST))
JSON_ONLY = Depends(require_json)


@router.put(
    "/{webhook}",
    dependencies=[MANAGE, JSON_ONLY],
    responses={201: {"model": WebhookStored, "description": "Created"}},
)
async def put_webhook(
    webhook: WebhookPath,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
    config: WebhookConfig,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    dry_run: DryRun = False,
) -> WebhookStored:
    """Create a webhook for a queue or a consumer group, or replace its configuration.

    When the webhook is created, the response contains the signing secret, in the format of Standard Webhooks. Whether it is
    paused or disabled does not change. With `If-None-Match: *`, an existing webhook is not changed: the response is 412,
    with the webhook (`current`) and the requested fields that differ from it (`changes`). The response waits until no deliverer sends by the
    former configuration (`in_force`).
    """
    spec = config.to_domain()
    _authorise(storage, principal, spec)
    if if_match == "*":
        await _require_webhook(storage, webhook)
    with comparing(
        _without_values(config),
        lambda definition: WebhookConfig.from_domain(definition.spec),
        WebhookOut.from_domain,
    ):
        put = await storage.webhooks.put(
            webhook,
            spec,
            if_match=expected_version(if_match),
            create_only=is_create_only(if_none_match),
            dry_run=dry_run,
            replace_pause=config.enabled is not None,
        )
    note_former_members(response, config)
    note_outcome(response, put.definition.version, created=put.created and not dry_run)
    in_force = not dry_run and await storage.webhooks.wait_until_in_force(put.definition)
    return WebhookStored.of(put, dry_run=dry_run, in_force=in_force)


def _without_values(config: WebhookConfig) -> WebhookConfig:
    """Return the configuration without header values, as the engine returns it."""
    if config.headers is None:
        return config
    return config.model_copy(update={"headers": dict.fromkeys(config.headers, HIDDEN_VALUE)})


def _authorise(storage: Storage, principal: Principal, spec: WebhookSpec) -> None:
    """Require permission to consume the source and write to the target. Raises Forbidden."""
    consume = {
        SourceKind.QUEUE: Action.QUEUE_RECEIVE,
        SourceKind.GROUP: Action.GROUP_COMMIT,
    }[spec.source.kind]
    authorise, namespace = storage.authorizer.authorise, principal.namespace
    authorise(principal, consume, f"{namespace}/{spec.source.name}")
    if spec.dead_letter_queue is not None:
        authorise(principal, Action.QUEUE_SEND, f"{namespace}/{spec.dead_letter_queue}")


async def _require_webhook(storage: Storage, webhook: WebhookPath) -> None:
    """Raise PreconditionFailed unless the webhook exists."""
    try:
        await storage.webhooks.get(webhook)
    except WebhookNotFound:
        raise PreconditionFailed("If-Match: * requires an existing webhook.") from None


@router.get("/{webhook}", dependencies=[SEE])
async def get_webhook(webhook: WebhookPath, storage: StorageDep, response: Response) -> WebhookOut:
    """Show the configuration and health of a webhook. The ETag covers the configuration only."""
    stored = await storage.webhooks.get(webhook)
    response.headers["etag"] = etag(stored.version)
    return WebhookOut.from_domain(stored)


@router.put("/{webhook}/pause", dependencies=[MANAGE])
async def pause_webhook(
    webhook: WebhookPath, storage: StorageDep, response: Response
) -> WebhookChanged:
    """Pause deliveries. Messages and records wait in their queue or stream.

    The response waits until the requests in progress have ended (`in_force`).
    """
    paused = await storage.webhooks.pause(webhook, paused=True)
    return await _changed_response(storage, paused, response)


@router.delete("/{webhook}/pause", dependencies=[MANAGE])
async def resume_webhook(
    webhook: WebhookPath, storage: StorageDep, response: Response
) -> WebhookChanged:
    """Resume deliveries. A webhook that the service has disabled stays disabled."""
    resumed = await storage.webhooks.pause(webhook, paused=False)
    return await _changed_response(storage, resumed, response)


async def _changed_response(
    storage: Storage, webhook: Webhook, response: Response
) -> WebhookChanged:
    in_force = await storage.webhooks.wait_until_in_force(webhook)
    response.headers["etag"] = etag(webhook.version)
    return WebhookChanged.of(webhook, in_force=in_force)


@router.delete("/{webhook}", dependencies=[MANAGE], status_code=204)
async def delete_webhook(
    webhook: WebhookPath, storage: StorageDep, if_match: IfMatch = None
) -> None:
    """Delete a webhook, its secrets and its log. The queue or group is kept.

    It is paused first, until its requests in progress have ended.
    """
    if if_match == "*":
        await _require_webhook(storage, webhook)
    seen = expected_version(if_match)
    paused = await storage.webhooks.pause(webhook, paused=True, if_match=seen)
    await storage.webhooks.wait_until_in_force(paused)
    await storage.webhooks.delete(webhook, if_match=None if seen is None else paused.version)


@router.get("", dependencies=[SEE])
async def list_webhooks(
    storage: StorageDep,
    principal: PrincipalDep,
    prefix: Prefix = "",
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> WebhookPage:
    """List webhooks by name."""
    about = ("webhooks", principal.namespace, prefix)
    after = decode_cursor(cursor, about, str) if cursor else ""
    webhooks = await storage.webhooks.list_webhooks(
        principal.namespace, prefix=prefix, after=after, limit=limit + 1
    )
    page = page_of(
        webhooks,
        limit,
        about,
        lambda webhook: webhook.name.name,
        lambda webhook: principal.policy.allows(Action.WEBHOOK_LIST, webhook.name.name),
    )
    return WebhookPage(
        items=[WebhookOut.from_domain(webhook) for webhook in page.items],
        next_cursor=page.next_cursor,
    )


@router.post("/{webhook}/secret", dependencies=[MANAGE, JSON_ONLY])
async def rotate_webhook_secret(
    webhook: WebhookPath,
    storage: StorageDep,
    rotation: Annotated[RotateIn, Body(default_factory=RotateIn)],
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
    return await _changed_response(storage, await storage.webhooks.enable(webhook), response)


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
    "format": "body",
    "timeout_seconds": 1,
    "rate": None,
    "in_flight_max": 10,
    "retry_seconds": [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
    "on_failure": "block",
    "dead_letter_queue": None,
    "disable_after_seconds": 432000,
    "log_retention_seconds": 259200,
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
        "/v1/webhooks/shop/enable", answer={**_HOOK, "version": 3, "in_force": True}
    ),
    "delete_webhook": Example("/v1/webhooks/shop", status=204),
}
