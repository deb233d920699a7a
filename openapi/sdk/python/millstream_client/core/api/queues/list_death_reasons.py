from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.death_reasons import DeathReasons


def list_death_reasons(
    queue: str,
) -> Call[DeathReasons]:
    """Count the dead letters of a queue by reason, most frequent first."""

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_death_reasons",
        "GET",
        "/v1/queues/{queue}/dead-letters/reasons".format(
            queue=quote(str(queue), safe=""),
        ),
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> DeathReasons:
    from ...models.death_reasons import DeathReasons

    if response.status_code == 200:
        response_200 = DeathReasons.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
