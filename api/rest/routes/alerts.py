"""Mutes of the dashboard's alerts."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import (
    Cursor,
    Limit,
    PrincipalDep,
    StorageDep,
    may,
    require_json,
)
from api.native.examples import AT, Example
from api.native.fields import to_ms
from api.rest.schemas.alert import MuteConfig, MuteOut, MutePage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.alerts.kinds import AlertKind, AlertSubject

router = APIRouter(prefix="/v1/alerts", tags=["alerts"], route_class=AuditedRoute)

SEE = Depends(may(Action.ALERT_LIST))
MANAGE = Depends(may(Action.ALERT_MANAGE, "name"))
AlertObject = Annotated[
    str,
    Path(
        description="Name of the object that the alert is about, such as that of a queue.",
        json_schema_extra={"pattern": "^[A-Za-z0-9_.:-]{1,256}$"},
    ),
]


@router.get("/mutes", dependencies=[SEE])
async def list_muted_alerts(
    storage: StorageDep,
    principal: PrincipalDep,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> MutePage:
    """List the muted alerts by kind and object."""
    about = ("alert_mutes", principal.namespace)
    after = decode_cursor(cursor, about, tuple[str, str]) if cursor else ("", "")
    mutes = await storage.alert_mutes.list(principal.namespace, after=after, limit=limit + 1)
    page = page_of(
        mutes,
        limit,
        about,
        lambda mute: (mute.kind.value, mute.object),
        lambda mute: principal.policy.allows(Action.ALERT_LIST, mute.object),
    )
    return MutePage(
        items=[MuteOut.from_domain(mute) for mute in page.items], next_cursor=page.next_cursor
    )


@router.put("/{kind}/{name}/mute", dependencies=[MANAGE, Depends(require_json)])
async def mute_alert(
    kind: AlertKind,
    name: AlertObject,
    storage: StorageDep,
    principal: PrincipalDep,
    config: MuteConfig,
) -> MuteOut:
    """Mute the alerts of one kind about an object, for some time.

    The dashboard then lists them as muted, for everyone in the namespace. Alerts of another kind about the same object are
    shown. Metrics do not change. An earlier mute is replaced.
    """
    subject, duration_ms = AlertSubject(kind, name), to_ms(config.duration_seconds)
    mute = await storage.alert_mutes.mute(
        principal.namespace, subject, duration_ms, by=principal.name
    )
    return MuteOut.from_domain(mute)


@router.delete("/{kind}/{name}/mute", dependencies=[MANAGE], status_code=204)
async def unmute_alert(
    kind: AlertKind,
    name: AlertObject,
    storage: StorageDep,
    principal: PrincipalDep,
) -> None:
    """Delete a mute: the dashboard shows the alert again."""
    await storage.alert_mutes.unmute(principal.namespace, AlertSubject(kind, name))


# Examples of the OpenAPI document

_MUTE = {
    "kind": "dead_letters_old",
    "name": "orders",
    "muted_by": "ada",
    "muted_at": AT,
    "until": "2026-02-01T12:00:00.000Z",
}

EXAMPLES = {
    "mute_alert": Example(
        "/v1/alerts/dead_letters_old/orders/mute", {"duration_seconds": 86400}, answer=_MUTE
    ),
    "list_muted_alerts": Example(
        "/v1/alerts/mutes", answer={"items": [_MUTE], "next_cursor": None}
    ),
    "unmute_alert": Example("/v1/alerts/dead_letters_old/orders/mute", status=204),
}
