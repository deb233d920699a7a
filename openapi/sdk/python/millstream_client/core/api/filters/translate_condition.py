from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

from ....calls import Call

if TYPE_CHECKING:
    from ...models.translate_request import TranslateRequest
    from ...models.translated_match import TranslatedMatch


def translate_condition(
    *,
    body: TranslateRequest,
) -> Call[TranslatedMatch]:
    """Translate a condition of Pub/Sub, Service Bus, JMS or RabbitMQ into a match."""
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {}

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"
    return Call(
        "translate_condition",
        "POST",
        "/v1/filters/translate",
        _read,
        headers=headers,
        **_kwargs,
    )


def _read(response: httpx.Response) -> TranslatedMatch:
    from ...models.translated_match import TranslatedMatch

    if response.status_code == 200:
        response_200 = TranslatedMatch.from_dict(response.json())

        return response_200

    raise AssertionError(f"{response.status_code} was not read")
