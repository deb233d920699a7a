from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call
from ...types import UNSET, Unset

if TYPE_CHECKING:
    from ...models.mirror_promotion import MirrorPromotion
    from ...models.promotion_in import PromotionIn


def promote_mirror(
    mirror: str,
    *,
    body: PromotionIn | Unset = UNSET,
) -> Call[MirrorPromotion]:
    """Make the streams and queues of a mirror independent of the other deployment.

    For a planned move, or after the other deployment failed. If it can be reached and the mirror's key has `stream:manage` there
    (for queues `queue:manage`), its streams and queues are made read-only and the last records are copied: nothing is lost. If these take longer than `wait_seconds`, the mirror
    is not promoted (`promoted_at` is null), and the other deployment stays read-only: call again. If it cannot be reached, or
    refuses, the mirror is promoted at once, and `origin` says so.

    A promoted mirror never copies again; nothing that is still on its way is added. A promotion cannot be undone: to copy again,
    in either direction, create another mirror.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    if not isinstance(body, Unset):
        _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "promote_mirror",
        "POST",
        "/v1/mirrors/{mirror}/promotion".format(
            mirror=quote(str(mirror), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> MirrorPromotion:
    from ...models.mirror_promotion import MirrorPromotion

    if response.status_code == 200:
        response_200 = MirrorPromotion.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
