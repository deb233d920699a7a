from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.alert_kind import AlertKind


def unmute_alert(
    kind: AlertKind,
    name: str,
) -> Call[None]:
    """Delete a mute: the dashboard shows the alert again."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "unmute_alert",
        "DELETE",
        "/v1/alerts/{kind}/{name}/mute".format(
            kind=quote(str(kind), safe=""),
            name=quote(str(name), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> None:
    if response.status_code == 204:
        return None
    raise AssertionError(f"{response.status_code} was not read")
