"""Credentials: who may do what, until when, and when they last did."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words
from api.admin.rendering import Context
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import may
from storage.domain.access.permissions import Action, Role
from storage.domain.clock import SystemClock

router = APIRouter(prefix="/ui/keys", include_in_schema=False, route_class=PageRoute)

MANAGE = Depends(may(Action.ADMIN_KEYS))
Cursor = Annotated[str, Query()]
_CLOCK = SystemClock()


@router.get("", dependencies=[MANAGE])
async def list_keys(context: Context, q: Words = "", cursor: Cursor = "") -> Response:
    """List the credentials that the caller may manage, by name."""
    about = ("ui", "keys", context.namespace, q)
    after = decode_cursor(cursor, about, tuple[str, str]) if cursor else None
    keys, rest = await context.storage.credentials.page(
        context.principal, name=q or None, after=after, limit=PAGE_ROWS
    )
    now_ms = _CLOCK.now_ms()
    return context.render(
        "keys.html",
        rows=[(key, _state(key.is_live(now_ms), key.revoked_at_ms)) for key in keys],
        roles=list(Role),
        q=q,
        cursor=cursor,
        more=None if rest is None else encode_cursor(about, rest),
    )


def _state(live: bool, revoked_at_ms: int | None) -> tuple[str, str]:
    """Return a credential's state: the level to show it in, and its label."""
    if live:
        return "ok", "Active"
    return ("quiet", "Revoked") if revoked_at_ms is not None else ("quiet", "Expired")


@router.get("/{key}", dependencies=[MANAGE])
async def show_key(context: Context, key: str) -> Response:
    """Show a credential and its state."""
    credential = await context.storage.credentials.get(context.principal, key)
    live = credential.is_live(_CLOCK.now_ms())
    return context.render(
        "key.html",
        key=credential,
        live_key=live,
        state=_state(live, credential.revoked_at_ms),
        roles=list(Role),
    )
