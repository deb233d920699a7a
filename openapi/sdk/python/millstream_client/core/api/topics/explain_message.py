from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.explain_request import ExplainRequest
    from ...models.explanation import Explanation


def explain_message(
    topic: str,
    *,
    body: ExplainRequest,
) -> Call[Explanation]:
    """Explain for each route whether it takes a message, and if not, which condition fails.

    The message is not published. It is given, or one that was published is named by its `id`; the routes are those of now.
    """
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "explain_message",
        "POST",
        "/v1/topics/{topic}/explain".format(
            topic=quote(str(topic), safe=""),
        ),
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> Explanation:
    from ...models.explanation import Explanation

    if response.status_code == 200:
        response_200 = Explanation.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
