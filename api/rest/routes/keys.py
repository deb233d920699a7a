"""API keys and access key pairs. The engine enforces who can grant what."""

from functools import partial
from typing import Annotated

from fastapi import Body, Depends, Path, Query, Response

from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import Cursor, Limit, PrincipalDep, StorageDep, may
from api.native.examples import API_KEY, AT, GRANT, KEY_ID, LATER, RATES, Example
from api.native.fields import to_ms
from api.rest.conditional_requests import NO_STORE, etag
from api.rest.definition_router import JSON_ONLY, definition_router
from api.rest.noun import Noun, Permissions, Schemas, Verbs
from api.rest.schemas.key import KeyConfig, KeyCreated, KeyOut, KeyPage, KeyPatch, KeyRotation
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.credentials import IssuedCredential, NewSecret
from storage.domain.access.permissions import Action, Principal

MANAGE = Depends(may(Action.ADMIN_KEYS))
Rotation = Annotated[KeyRotation, Body(default_factory=KeyRotation)]
KeyId = Annotated[str, Path(description="Id of an API key or access key pair.")]


def key_from_path(key: KeyId) -> str:
    """Return the id that the path names."""
    return key


def _verbs(storage: Storage, caller: Principal) -> Verbs:
    credentials = storage.credentials
    return {
        "get": partial(credentials.get, caller),
        "change": partial(credentials.change, caller),
        "delete": partial(credentials.revoke, caller),
    }


KEYS = Noun(
    name="key",
    ids={"delete": "revoke_key"},
    path=Annotated[str, Depends(key_from_path)],
    own_permissions=Permissions([MANAGE], [MANAGE]),
    schemas=Schemas(KeyOut, patch=KeyPatch),
    verbs=_verbs,
    is_etag_complete=True,
    descriptions={
        "get": "Show a credential without its secret, which cannot be retrieved.",
        "change": "Change permissions of a credential. They apply from its next call.",
        "delete": "Revoke a credential permanently. All processes close its open connections.",
    },
)
router = definition_router(KEYS)


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


@router.post("/{key}/rotations", dependencies=[MANAGE, JSON_ONLY], status_code=201)
async def rotate_key(
    key: KeyId,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
    rotation: Rotation,
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
    return KeyCreated.from_domain(issued, secret=secret.token)


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
