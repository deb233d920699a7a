from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.process_list import ProcessList


def list_processes() -> Call[ProcessList]:
    """List the processes of the deployment by role.

    A killed process is listed for ten more seconds.
    """

    _kwargs: dict[str, Any] = {}

    return Call(
        "list_processes",
        "GET",
        "/v1/processes",
        _read,
        **_kwargs,
    )


def _read(response: httpx.Response) -> ProcessList:
    from ...models.process_list import ProcessList

    if response.status_code == 200:
        response_200 = ProcessList.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
