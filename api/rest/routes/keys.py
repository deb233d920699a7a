"""API keys and access key pairs. The engine enforces who can grant what."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import Cursor, Limit, PrincipalDep, StorageDep, may, require_json
from api.native.examples import API_KEY, AT, GRANT, KEY_ID, LATER, RATES, Example
from api.native.fields import to_ms
from api.rest.conditional_requests import (
    NO_STORE,
    IfMatch,
    IfNoneMatch,
    etag,
    expected_version,
    is_unchanged,
)
from api.rest.schemas.key import KeyConfig, KeyCreated, KeyOut, KeyPage, KeyPatch, KeyRotation
from storage.domain import limits
from storage.domain.access.credentials import IssuedCredential, NewSecret
from storage.domain.access.permissions import Action

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=AuditedRoute)

MANAGE = Depends(may(Action.ADMIN_KEYS))
JSON_ONLY = Depends(require_json)
KeyId = Annotated[str, Path(description="Id of an API key or access key pair.")]
"""Secrets are for who asked, and for nothing on the way."""


@router.post("", dependencies=[MANAGE, JSON_ONLY], status_code=201)
async def create_key(
    config: KeyConfig, storage: StorageDep, principal: PrincipalDep, response: Response
) -> KeyCreated:
    """Create a credential. The secret is returned only in this response.

    A caller cannot grant permissions or rates that it does not have. The secret of an access key pair is stored
    encrypted; the secret of an API key is not stored.
    """
    return _made(*await storage.credentials.create(principal, config.to_domain()), response)


@router.get("", dependencies=[MANAGE])
async def list_keys(
    storage: StorageDep,
    principal: PrincipalDep,
    name: Annotated[str | None, Query(max_length=limits.NAME_CHARACTERS_MAX)] = None,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> KeyPage:
    """List credentials by name, including those that ended within the last 90 days."""
    about = ("keys", principal.namespace, name or "")
    after = decode_cursor(cursor, about, tuple[str, str]) if cursor else None
    credentials, rest = await storage.credentials.page(
        principal, name=name, after=after, limit=limit
    )
    return KeyPage(
        items=[KeyOut.from_domain(issued) for issued in credentials],
        next_cursor=None if rest is None else encode_cursor(about, rest),
    )


@router.get(
    "/{key}",
    dependencies=[MANAGE],
    response_model=KeyOut,
    responses={304: {"description": "Not modified"}},
)
async def get_key(
    key: KeyId,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
    if_none_match: IfNoneMatch = None,
) -> KeyOut | Response:
    """Show a credential without its secret, which cannot be retrieved."""
    issued = await storage.credentials.get(principal, key)
    if is_unchanged(if_none_match, issued.version):
        return Response(status_code=304, headers={"etag": etag(issued.version)})
    return _key_response(issued, response)


@router.patch("/{key}", dependencies=[MANAGE, JSON_ONLY])
async def change_key(
    key: KeyId,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
    patch: KeyPatch,
    if_match: IfMatch = None,
) -> KeyOut:
    """Change permissions of a credential. They apply from its next call."""
    issued = await storage.credentials.change(
        principal, key, patch.apply, if_match=expected_version(if_match)
    )
    return _key_response(issued, response)


@router.delete("/{key}", dependencies=[MANAGE], status_code=204)
async def revoke_key(
    key: KeyId, storage: StorageDep, principal: PrincipalDep, if_match: IfMatch = None
) -> None:
    """Revoke a credential permanently. All processes close its open connections."""
    await storage.credentials.revoke(principal, key, if_match=expected_version(if_match))


@router.post("/{key}/rotations", dependencies=[MANAGE, JSON_ONLY], status_code=201)
async def rotate_key(
    key: KeyId,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
    rotation: Annotated[KeyRotation, Body(default_factory=KeyRotation)],
) -> KeyCreated:
    """Create a new credential with the same name and permissions.

    The previous one stays valid for the overlap period. At most two credentials of a family are active: revoke one before
    you create a third.
    """
    made = await storage.credentials.rotate(principal, key, to_ms(rotation.overlap_seconds))
    return _made(*made, response)


def _made(issued: IssuedCredential, secret: NewSecret, response: Response) -> KeyCreated:
    response.headers["etag"] = etag(issued.version)
    response.headers["cache-control"] = NO_STORE
    return KeyCreated.of(issued, secret.token)


def _key_response(issued: IssuedCredential, response: Response) -> KeyOut:
    response.headers["etag"] = etag(issued.version)
    return KeyOut.from_domain(issued)


# Examples of the OpenAPI document

_KEY = {
    "id": KEY_ID,
    "kind": "key",
    "name": "shop",
    "namespace": "default",
    "all_namespaces": False,
    "roles": ["viewer"],
    "grants": [GRANT],
    "rates": None,
    "family": KEY_ID,
    "version": 1,
    "created_by": "local-administrator",
    "created_at": AT,
    "changed_at": AT,
    "expires_at": None,
    "last_used_at": None,
    "revoked_at": None,
}

EXAMPLES = {
    "create_key": Example(
        "/v1/keys",
        {"name": "shop", "roles": ["viewer"], "grants": [GRANT]},
        201,
        {**_KEY, "secret": API_KEY},
    ),
    "get_key": Example(f"/v1/keys/{KEY_ID}", answer=_KEY),
    "list_keys": Example("/v1/keys?name=shop", answer={"items": [_KEY], "next_cursor": None}),
    "change_key": Example(
        f"/v1/keys/{KEY_ID}",
        {"rates": {"calls_per_second": 100}},
        answer={**_KEY, "rates": RATES, "version": 2, "changed_at": LATER},
    ),
    "rotate_key": Example(
        f"/v1/keys/{KEY_ID}/rotations",
        {"overlap_seconds": 3600},
        201,
        {**_KEY, "id": "ba9876543210", "rates": RATES, "secret": API_KEY},
    ),
    "revoke_key": Example(f"/v1/keys/{KEY_ID}", status=204),
}
