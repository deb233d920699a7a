from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.alert_kind import AlertKind
    from ...models.mute_config import MuteConfig
    from ...models.mute_out import MuteOut


def mute_alert(
    kind: AlertKind,
    name: str,
    *,
    body: MuteConfig,
) -> Call[MuteOut]:
    """Mute the alerts of one kind about an object, for some time.

    The dashboard then lists them as muted, for everyone in the namespace. Alerts of another kind about the same object are
    shown. Metrics do not change. An earlier mute is replaced.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "mute_alert",
        "PUT",
        "/v1/alerts/{kind}/{name}/mute".format(
            kind=quote(str(kind), safe=""),
            name=quote(str(name), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MuteOut:
    from ...models.mute_out import MuteOut

    if response.status_code == 200:
        response_200 = MuteOut.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
