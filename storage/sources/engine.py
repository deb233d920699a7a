"""Source engine: definitions and the tokens of their URLs.

`storage.sources.receiver` takes the events.
"""

import secrets
from collections.abc import Awaitable
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from storage.access.secret_box import SecretBox
from storage.catalog.cached_definitions import CachedDefinitions
from storage.catalog.catalog import Catalog
from storage.catalog.definition_store import DefinitionRules, DefinitionStore
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import HIDDEN_VALUE, OTHER_HIDDEN_VALUE, next_version
from storage.domain.errors import (
    MillstreamError,
    QueueNotFound,
    SourceNotFound,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.names import DEFAULT_NAMESPACE, QueueName, SourceName, StreamName, new_log_id
from storage.domain.sources.source import InboundSource, SourceSpec, SourceToken
from storage.domain.streams.stream import EventTimes
from storage.hot_store.outbox import OutboxAddress, OutboxStore
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.repositories.sources import LockedSource, SourceRows
from storage.queues.engine import Queues
from storage.sources.secrets import SourceSecrets
from storage.streams.engine import Streams

T = TypeVar("T")
SourceStore = DefinitionStore[SourceName, SourceSpec, InboundSource, LockedSource]


class RotatedToken(NamedTuple):
    """The source with its new token, and until when the previous one is valid."""

    source: InboundSource
    old_until_ms: int | None


class Sources:
    """The sources of a deployment.

    Every verb raises SourceNotFound for a source that does not exist, and SecretsOff in a deployment that cannot store
    secrets.
    """

    def __init__(
        self,
        *,
        database: Database,
        listener: Listener,
        catalog: Catalog,
        queues: Queues,
        streams: Streams,
        outboxes: OutboxStore,
        box: SecretBox,
        clock: Clock,
    ) -> None:
        self._rows = SourceRows(database)
        rows_with_secrets = SourceRows(database, SourceSecrets(box))
        self._cached: CachedDefinitions[SourceName, InboundSource] = CachedDefinitions(
            rows_with_secrets, SourceName, _not_found, listener, clock
        )
        self._store: SourceStore = DefinitionStore(
            self._rows, _RULES, clock, on_change=self._cached.invalidate
        )
        self._with_secrets: SourceStore = DefinitionStore(
            rows_with_secrets,
            _RULES,
            clock,
            check=self._check_target,
            on_change=self._cached.invalidate,
        )
        self._catalog = catalog
        self._queues = queues
        self._streams = streams
        self._outboxes = outboxes
        self._clock = clock
        self.current = self._cached.get
        """Return the source with its secrets and tokens, from the cache if possible."""
        self.put = self._with_secrets.put
        """Create the source or replace its configuration; its tokens and its outbox stay."""
        self.get = self._store.get
        """Return the source without secrets and tokens."""
        self.get_with_secrets = self._with_secrets.get
        """Return the source with its secrets and tokens."""
        self.pause = self._store.pause
        """Pause the source, or resume it. A paused one refuses events with 503, and providers send them again."""
        self.list_sources = self._store.page
        self.keep_warm = self._cached.keep_warm
        """Keep every source cached, until cancelled."""
        self.close = self._cached.close

    async def _check_target(self, name: SourceName, spec: SourceSpec) -> None:
        """Raise ValidationFailed if the target does not exist, or never accepts an event."""
        into, namespace = spec.into, name.namespace
        if into.queue is not None:
            queue = self._catalog.queue(QueueName(into.queue, namespace))
            await _required("/into/queue", queue, QueueNotFound)
        elif into.stream is not None:
            finding = self._catalog.stream(StreamName(into.stream, namespace))
            stream = await _required("/into/stream", finding, StreamNotFound)
            if stream.spec.event_times is EventTimes.CLIENT_REQUIRE:
                detail = "The stream requires event times, which webhooks do not have"
                raise ValidationFailed.at("/into/stream", detail, "conflict")

    async def delete(self, name: SourceName, *, if_match: int | None = None) -> InboundSource:
        """Delete the source and the events that wait in its outbox; return its last definition."""
        async with self._store.changing(name, if_match) as (locked, source):
            await self._outboxes.delete(outbox_of(source))  # while a retry still finds its name
            await locked.delete(source, self._clock.now_ms())
        await self._outboxes.delete(outbox_of(source))  # what was accepted meanwhile
        await self._retire_producer(source)
        return source

    async def _retire_producer(self, source: InboundSource) -> None:
        """Let the target forget up to where it has the events of a deleted source."""
        target = target_of(source)
        if isinstance(target, QueueName):
            await self._queues.retire_writers(target, [producer_of(source)])
        else:
            today = day_of(self._clock.now_ms())
            await self._streams.retire_writers(target, producers_of(source, today + 1))

    async def rotate_token(self, name: SourceName, overlap_ms: int) -> RotatedToken:
        """Replace the token of the URL; the previous one stays valid for `overlap_ms`.

        Raises ValidationFailed.
        """
        if not 0 <= overlap_ms <= limits.SOURCE_TOKEN_OVERLAP_MS_MAX:
            most = limits.SOURCE_TOKEN_OVERLAP_MS_MAX // limits.SECOND_MS
            raise ValidationFailed.at("/overlap_seconds", f"must be 0 to {most}", "out_of_range")
        async with self._with_secrets.changing(name) as (locked, current):
            now_ms = self._clock.now_ms()
            until_ms = now_ms + overlap_ms if overlap_ms else None
            old = (SourceToken(current.tokens[0].value, until_ms),) if until_ms else ()
            tokens = (_new_token(name.namespace), *old)
            changed = next_version(current, now_ms, tokens=tokens)
            await locked.update(changed)
            return RotatedToken(changed, until_ms)

    async def all(self) -> list[InboundSource]:
        """Return the sources of every namespace, without secrets and tokens."""
        return [source async for source in self._rows.every()]


async def _required(pointer: str, target: Awaitable[T], missing: type[MillstreamError]) -> T:
    try:
        return await target
    except missing as error:
        raise ValidationFailed.at(pointer, error.detail, "not_found") from None


def target_of(source: InboundSource) -> QueueName | StreamName:
    """Return the name of the queue or stream that receives the source's events."""
    into, namespace = source.spec.into, source.name.namespace
    if into.queue is not None:
        return QueueName(into.queue, namespace)
    assert into.stream is not None
    return StreamName(into.stream, namespace)


def producer_of(source: InboundSource) -> str:
    """Return the id under which a queue knows the source, whatever its name."""
    return f"source/{source.source_id}"


def producer_on(source: InboundSource, day: int) -> str:
    """Return the id under which a stream knows the events that the source accepted on a day.

    A closed shard stays as long as it knows a producer: one for each day can be retired while the source lives.
    """
    return f"{producer_of(source)}/{day}"


def producers_of(source: InboundSource, last: int, after: int = -1) -> list[str]:
    """Return the ids of the days behind `after` up to `last`, of a month at most."""
    created = day_of(source.created_at_ms) - 1  # the store's clock may be behind
    first = max(created, after + 1, last - limits.SOURCE_PRODUCERS_RETIRED_MAX + 1)
    return [producer_on(source, day) for day in range(first, last + 1)]


def day_of(time_ms: int) -> int:
    """Return the number of a day since 1970."""
    return time_ms // limits.DAY_MS


def outbox_of(source: InboundSource) -> OutboxAddress:
    """Return the address of a source's outbox."""
    return OutboxAddress(source.name.namespace, source.source_id)


def namespace_of(token: str) -> str:
    """Return the namespace that a token names: it stands before the random part."""
    return token.rpartition(".")[0] or DEFAULT_NAMESPACE


def _new_token(namespace: str) -> SourceToken:
    random = secrets.token_hex(limits.SOURCE_TOKEN_BYTES)
    return SourceToken(random if namespace == DEFAULT_NAMESPACE else f"{namespace}.{random}")


def _not_found(name: SourceName) -> MillstreamError:
    return SourceNotFound(f"Source '{name.name}' does not exist.")


def _create(name: SourceName, spec: SourceSpec, now_ms: int) -> InboundSource:
    if not spec.secrets:
        detail = "Specify the secret that the provider signs with"
        raise ValidationFailed.at("/webhook/secrets", detail, "missing")
    return InboundSource(
        name=name,
        source_id=new_log_id(),
        spec=spec,
        tokens=(_new_token(name.namespace),),
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )


def _merge(current: SourceSpec, spec: SourceSpec) -> SourceSpec:
    """Keep the present secrets where none are given."""
    return spec if spec.secrets is not None else replace(spec, secrets=current.secrets)


def _redact(before: InboundSource, after: SourceSpec) -> InboundSource:
    """Return `before` with markers in place of its secrets."""
    new = after.secrets or ()
    markers = tuple(
        HIDDEN_VALUE if secret in new[nth : nth + 1] else OTHER_HIDDEN_VALUE
        for nth, secret in enumerate(before.spec.secrets or ())
    )
    return replace(before, spec=replace(before.spec, secrets=markers))


_RULES: DefinitionRules[SourceName, SourceSpec, InboundSource] = DefinitionRules(
    not_found=_not_found, create=_create, merge=_merge, is_pausable=True, redact=_redact
)
