from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.route_config import RouteConfig
    from ...models.route_stored import RouteStored


def put_route(
    topic: str,
    route: str,
    *,
    body: RouteConfig,
    dry_run: bool | Unset = False,
    if_match: str | Unset = UNSET,
    if_none_match: str | Unset = UNSET,
) -> Call[RouteStored]:
    """Create a route, or replace its configuration.

    The topic `stream:clicks` stands for the stream `clicks`: its routes take the records that are appended to the stream.
    The topic `queue:orders` takes the messages of the queue `orders`, and is created with its first route.

    It takes every message that matches and is accepted after this call was answered, and none that was accepted before
    the call began. If the match, the target, the transform, the format or the key changes, the former revision still
    delivers what was accepted for it. The caller must be allowed to write to the target and the dead-letter queue, which
    need not exist yet. Whether the route is paused does not change.

    With a `spread` as its target, each message goes to one of its members, always to the same one. The former revision of a
    spread that is changed delivers to its own members.

    With a URL as its target, a queue and a webhook are created and changed with the route. When it is new, the response
    contains the signing secret. Another URL, or other settings of it, apply to all messages that are not delivered yet,
    without a new revision. The caller must be allowed to manage the webhook, by its name.

    With `If-None-Match: *`, an existing route is not changed: the response is 412, with the route (`current`) and the
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
        "put_route",
        "PUT",
        "/v1/topics/{topic}/routes/{route}".format(
            topic=quote(str(topic), safe=""),
            route=quote(str(route), safe=""),
        ),
        _read,
        params=params,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> RouteStored:
    from ...models.route_stored import RouteStored

    if response.status_code == 200:
        response_200 = RouteStored.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = RouteStored.from_dict(response.json())

        return response_201

    raise AssertionError(f"{response.status_code} was not read")
