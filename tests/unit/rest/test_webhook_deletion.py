"""Deletion of a webhook: the condition of the request, also while its requests end."""

from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from api.rest.routes.webhooks import _delete
from storage.domain.definitions import ANY_VERSION
from storage.domain.names import WebhookName

NAME = WebhookName("crm")


@pytest.mark.parametrize(
    ("requested", "at_deletion"), [(None, None), (ANY_VERSION, ANY_VERSION), (3, 4)]
)
async def test_condition_is_kept_until_the_deletion(requested, at_deletion):
    """With `If-Match: *`, a change of the webhook meanwhile left it paused and answered 412."""
    webhooks = AsyncMock()
    webhooks.pause.return_value = SimpleNamespace(version=4)

    await _delete(webhooks, NAME, requested)

    webhooks.pause.assert_awaited_with(NAME, paused=True, if_match=requested)
    webhooks.delete.assert_awaited_with(NAME, if_match=at_deletion)
