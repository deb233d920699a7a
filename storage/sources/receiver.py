"""Reception of events: token, quota, signature, age, event id; then the event is on disk.

The token is checked before the quota, and the quota before the HMAC.
"""

import hmac
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import attrs
import msgspec

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.clock import Clock
from storage.domain.errors import (
    MessageTooLarge,
    OutboxFull,
    QueueNotFound,
    SignatureRejected,
    SourceNotFound,
    SourcePaused,
    StorageBusy,
    StorageUnavailable,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.names import QueueName, SourceName, check_name
from storage.domain.sources.signatures import Handshake, deduplication_id, sign, verify
from storage.domain.sources.source import (
    InboundSource,
    SourceEvent,
    SourceFailure,
)
from storage.hot_store.outbox import Acceptance, OfferedEvent, OutboxStore
from storage.quotas.enforcer import QuotaEnforcer
from storage.quotas.memory_guard import MemoryGuard
from storage.sources.engine import Sources, namespace_of, outbox_of, target_of
from storage.sources.events import encode_event, key_of, message_of, record_of
from storage.sources.transfer import SourceTransfer
from storage.streams.append_rules import check_records, timed

_TEST_ID_BYTES = 8


class Reception(NamedTuple):
    """Outcome of a request: a handshake's response, or an event, perhaps accepted before."""

    event_id: str
    duplicate: bool
    handshake: Handshake | None = None

    @property
    def outcome(self) -> str:
        """Label under which the request is counted."""
        if self.handshake is not None:
            return "handshake"
        return "duplicate" if self.duplicate else "accepted"


@attrs.define(eq=False, slots=False, kw_only=True)
class SourceReceiver:
    """Receiver of the events of all sources."""

    _sources: Sources
    _outboxes: OutboxStore
    _catalog: Catalog
    _transfer: SourceTransfer
    _quotas: QuotaEnforcer
    _memory_guard: MemoryGuard
    _clock: Clock

    async def find(self, name: str, token: str) -> InboundSource:
        """Return the source of a URL.

        Raises SourceNotFound, the same for an unknown name and a wrong token.
        """
        try:
            namespace = namespace_of(token)
            check_name(namespace)
            source = await self._sources.current(SourceName(name, namespace))
        except (ValidationFailed, SourceNotFound):
            raise SourceNotFound from None
        now_ms = self._clock.now_ms()
        matches = [
            hmac.compare_digest(known.value.encode(), token.encode())
            for known in source.tokens
            if known.expires_at_ms is None or known.expires_at_ms > now_ms
        ]
        if not any(matches):
            raise SourceNotFound
        return source

    async def receive(
        self, source: InboundSource, headers: Mapping[str, str], body: bytes
    ) -> Reception:
        """Verify a request and put its event into the source's outbox, on disk.

        `headers` have names in lower case. Raises SourcePaused, QuotaExceeded, MessageTooLarge, SignatureRejected, OutboxFull;
        ValidationFailed for an event that its target never accepts.
        """
        if source.spec.paused:
            raise SourcePaused
        await self._charge(source, len(body))
        now_ms = self._clock.now_ms()
        try:
            event = verify(source.spec, source.spec.secrets or (), headers, body, now_ms)
        except SignatureRejected as rejected:
            reason = str(rejected.facts["reason"])
            await self._note_rejected(source, reason, rejected.detail, len(body))
            raise
        if event.handshake is not None:
            await self._outboxes.note_handshake(outbox_of(source), self._clock.script_time())
            return Reception("", False, event.handshake)
        stored = _event(source, headers, body, event.event_id, now_ms)
        try:
            await self._check_target(source, stored)
        except (MessageTooLarge, ValidationFailed) as refused:
            await self._note_rejected(source, refused.code.value, refused.detail, len(body))
            raise
        return await self._accept(source, stored)

    async def _charge(self, source: InboundSource, size_bytes: int) -> None:
        """Spend the quotas of the namespace and of the target. Raises QuotaExceeded, BacklogFull."""
        namespace, into = source.name.namespace, source.spec.into
        if self._memory_guard.is_shedding:
            self._memory_guard.check(namespace)
        resource = f"queue/{into.queue}" if into.queue is not None else f"stream/{into.stream}"
        sender = Principal(f"source:{source.name.name}", namespace)
        waiting = self._quotas.acquire(sender, resource, messages=1, size_bytes=size_bytes)
        if waiting is not None:
            await waiting

    def test_request(self, source: InboundSource) -> tuple[dict[str, str], bytes]:
        """Return headers and body of a test event, signed as the provider does."""
        event_id = f"test-{secrets.token_hex(_TEST_ID_BYTES)}"
        body = msgspec.json.encode({"id": event_id, "event_id": event_id, "type": "test"})
        [secret, *_] = source.spec.secrets or ("",)
        timestamp = self._clock.now_ms() // limits.SECOND_MS
        headers = sign(source.spec, secret, body, event_id=event_id, timestamp=timestamp)
        return {"content-type": "application/json", **headers}, body

    async def _accept(self, source: InboundSource, event: SourceEvent) -> Reception:
        id_ = deduplication_id(event.event_id)
        acceptance = await self._outboxes.accept(
            outbox_of(source),
            OfferedEvent(id_, encode_event(event), source.spec.dedup_ms),
            limits.OUTBOX_BYTES_MAX,
            self._clock.script_time(),
        )
        self._transfer.begin(source)
        if acceptance is Acceptance.FULL:
            raise OutboxFull
        return Reception(event.event_id, acceptance is Acceptance.DUPLICATE)

    async def _check_target(self, source: InboundSource, event: SourceEvent) -> None:
        """Raise MessageTooLarge or ValidationFailed for an event that its target never accepts.

        It would stop those behind it. If the target is missing or unknown, the event waits for it.
        """
        target = target_of(source)
        with suppress(QueueNotFound, StreamNotFound, StorageUnavailable, StorageBusy):
            if isinstance(target, QueueName):
                queue = await self._catalog.queue(target)
                queue.check_message(message_of(event, source, queue))
            else:
                stream = await self._catalog.stream(target)
                records = [record_of(event)]
                check_records(stream, records)
                timed(stream.spec, records, self._clock.now_ms)

    async def _note_rejected(
        self, source: InboundSource, reason: str, detail: str, size_bytes: int
    ) -> None:
        failure = SourceFailure(self._clock.now_ms(), reason, detail, size_bytes)
        await self._outboxes.note_rejected(outbox_of(source), failure, self._clock.script_time())


def _event(
    source: InboundSource, headers: Mapping[str, str], body: bytes, event_id: str, now_ms: int
) -> SourceEvent:
    """Return what is stored of a request; header values that are too long are left out."""
    chosen = [(name, headers.get(name.lower())) for name in source.spec.headers]
    stored = tuple(
        (name, value)
        for name, value in chosen
        if value is not None and len(value.encode()) <= limits.SOURCE_HEADER_BYTES_MAX
    )
    return SourceEvent(
        body,
        headers.get("content-type", ""),
        stored,
        event_id,
        now_ms,
        key_of(body, source.spec.into),
    )
