"""Sources: configuration, the URL that providers post to, counters, rejected requests."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from millstream_client.aio.definitions import create
from millstream_client.aio.resources import AsyncResource
from millstream_client.core.api.sources.delete_source import delete_source
from millstream_client.core.api.sources.get_source import get_source
from millstream_client.core.api.sources.get_source_stats import get_source_stats
from millstream_client.core.api.sources.get_source_url import get_source_url
from millstream_client.core.api.sources.list_source_failures import list_source_failures
from millstream_client.core.api.sources.pause_source import pause_source
from millstream_client.core.api.sources.put_source import put_source
from millstream_client.core.api.sources.resume_source import resume_source
from millstream_client.core.api.sources.rotate_source_url import rotate_source_url
from millstream_client.core.api.sources.test_source import test_source
from millstream_client.core.models.rotate_token_in import RotateTokenIn
from millstream_client.core.models.source_config import SourceConfig
from millstream_client.core.models.source_into import SourceInto
from millstream_client.core.models.source_stored import SourceStored
from millstream_client.core.models.source_webhook import SourceWebhook
from millstream_client.core.models.webhook_provider import WebhookProvider

if TYPE_CHECKING:
    from millstream_client.calls import Call
    from millstream_client.core.models.received_event import ReceivedEvent
    from millstream_client.core.models.source_failure_out import SourceFailureOut
    from millstream_client.core.models.source_out import SourceOut
    from millstream_client.core.models.source_stats import SourceStats
    from millstream_client.core.models.source_url import SourceUrl
    from millstream_client.core.params import (
        SourceConfigParams,
        SourceIntoParams,
        SourceWebhookParams,
    )

DAY_S = 86_400.0


class AsyncSource(AsyncResource):
    """A source of webhooks, whether it exists or not. Raises MillstreamError.

    `webhook` and `into` have the fields of the REST API: `{"provider": "github", "secrets": ["…"]}` and `{"queue":
    "orders"}`.
    """

    async def create(
        self,
        webhook: SourceWebhookParams,
        into: SourceIntoParams,
        *,
        only_new: bool = False,
        **config: Unpack[SourceConfigParams],
    ) -> SourceStored:
        """Create the source. If it exists with these settings, return it, with `created` False.

        Settings that you leave out are not compared. The `path` of one that exists is None: `url` returns it. Raises AlreadyExists, which names the settings that differ; with
        `only_new`, whenever it exists.
        """
        call = self._put(webhook, into, config, if_none_match="*")
        return await create(self.transport, call, _existing, only_new=only_new)

    async def apply(
        self,
        webhook: SourceWebhookParams,
        into: SourceIntoParams,
        *,
        dry_run: bool = False,
        **config: Unpack[SourceConfigParams],
    ) -> SourceStored:
        """Create the source, or replace its configuration; `changes` has the fields that differed.

        Settings that you leave out take their defaults; secrets and URL stay. With `dry_run`, nothing is stored.
        """
        return await self.transport.call(self._put(webhook, into, config, dry_run=dry_run))

    def _put(
        self,
        webhook: SourceWebhookParams,
        into: SourceIntoParams,
        config: SourceConfigParams,
        **conditions: Any,
    ) -> Call[SourceStored]:
        body = SourceConfig(SourceWebhook(WebhookProvider.HMAC), SourceInto())
        call = put_source(self.name, body=body, **conditions)
        return replace(call, json={"webhook": dict(webhook), "into": dict(into), **config})

    async def config(self) -> SourceOut:
        """Return the configuration, without secrets."""
        return await self.transport.call(get_source(self.name))

    async def pause(self) -> SourceOut:
        """Pause the source: its events are refused, and providers send them again."""
        return await self.transport.call(pause_source(self.name))

    async def resume(self) -> SourceOut:
        """Resume the source."""
        return await self.transport.call(resume_source(self.name))

    async def delete(self) -> None:
        """Delete the source, and the events that have not reached its target."""
        await self.transport.call(delete_source(self.name))

    async def url(self) -> str:
        """Return the URL to give to the provider. It is a credential."""
        return self._url_of(await self.transport.call(get_source_url(self.name)))

    async def rotate_url(self, *, overlap_seconds: float = DAY_S) -> str:
        """Replace the URL and return the new one; the previous one overlaps for a while."""
        body = RotateTokenIn(overlap_seconds=overlap_seconds)
        return self._url_of(await self.transport.call(rotate_source_url(self.name, body=body)))

    def _url_of(self, shown: SourceUrl) -> str:
        return f"{self.transport.options.url}{shown.path}"

    async def test(self) -> ReceivedEvent:
        """Send a test event, signed as the provider does, through the source to its target."""
        return await self.transport.call(test_source(self.name))

    async def stats(self) -> SourceStats:
        """Return the numbers of accepted, repeated, rejected and waiting events."""
        return await self.transport.call(get_source_stats(self.name))

    async def failures(self) -> list[SourceFailureOut]:
        """Return the last rejected requests, newest first."""
        return (await self.transport.call(list_source_failures(self.name))).items


def _existing(fields: dict[str, Any]) -> SourceStored:
    return SourceStored.from_dict({**fields, "path": None})
