from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.source_config import SourceConfig
    from ...models.source_stored import SourceStored


def put_source(
    source: str,
    *,
    body: SourceConfig,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[SourceStored]:
    """Create a source that receives webhooks of another service, or replace its configuration.

    The response contains the path to be given to the provider, behind the address of this service. A POST there needs no key:
    the path and the provider's signature authorise it. The response is 2xx once the event is on disk, and 401 for a bad signature.
    The path stays until it is rotated. Whether the source is paused does not
    change. With `If-None-Match: *`, an existing source is not changed: the response is 412, with the source (`current`) and the
    requested fields that differ from it (`changes`).
    """
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "put_source",
        "PUT",
        "/v1/sources/{source}".format(
            source=quote(str(source), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> SourceStored:
    from ...models.source_stored import SourceStored

    if response.status_code == 200:
        response_200 = SourceStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = SourceStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
