"""Source: a URL at which another service posts its events, and where they go.

    provider ──POST──▶ token, quota, signature, age, event id ──▶ outbox ──▶ queue or stream
                            └ 401, counted, nothing stored

An event is acknowledged when it is on disk in the source's outbox. It is in its target once, however often the
provider sends it.
"""

from enum import StrEnum

import msgspec

from storage.domain import limits
from storage.domain.definitions import check_seconds
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.log.json_body import JSON_POINTER
from storage.domain.names import SourceName, check_name
from storage.domain.webhooks import HEADER_NAME

_NEVER_STORED = frozenset({"authorization", "cookie", "proxy-authorization"})


class WebhookProvider(StrEnum):
    """Service whose signatures are verified; `hmac` is any other that signs with a secret."""

    STANDARD_WEBHOOKS = "standard_webhooks"
    STRIPE = "stripe"
    GITHUB = "github"
    SLACK = "slack"
    HMAC = "hmac"


class HmacAlgorithm(StrEnum):
    """Hash function of an HMAC."""

    SHA256 = "sha256"
    SHA512 = "sha512"
    SHA1 = "sha1"


class SignatureEncoding(StrEnum):
    """Text encoding of a signature."""

    HEX = "hex"
    BASE64 = "base64"


class HmacScheme(msgspec.Struct, frozen=True, kw_only=True):
    """Signature of a provider that is not listed.

    It covers the body, or with a `timestamp_header` `<timestamp>.<body>`. `id_header` names the event.
    """

    signature_header: str = "x-signature"
    algorithm: HmacAlgorithm = HmacAlgorithm.SHA256
    encoding: SignatureEncoding = SignatureEncoding.HEX
    prefix: str = ""
    timestamp_header: str | None = None
    id_header: str | None = None

    def faults(self) -> list[FieldFault]:
        """Return the faults of the scheme."""
        names = {
            "signature_header": self.signature_header,
            "timestamp_header": self.timestamp_header,
            "id_header": self.id_header,
        }
        return [
            FieldFault(f"/webhook/{field}", "Invalid HTTP header name")
            for field, name in names.items()
            if name is not None and not HEADER_NAME.fullmatch(name)
        ]


class SourceTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Queue or stream that receives the events.

    `key` is a JSON Pointer into the body: its value is the record key, or in a queue the message group.
    """

    queue: str | None = None
    stream: str | None = None
    key: str | None = None

    def faults(self) -> list[FieldFault]:
        """Return the faults of the target."""
        if (self.queue is None) == (self.stream is None):
            return [FieldFault("/into", "Specify either a queue or a stream", "conflict")]
        faults = []
        field, name = ("queue", self.queue) if self.queue is not None else ("stream", self.stream)
        try:
            check_name(name or "")
        except ValidationFailed as error:
            faults.append(FieldFault(f"/into/{field}", error.detail))
        if self.key is not None and not _is_pointer(self.key):
            faults.append(FieldFault("/into/key", "Must be a JSON Pointer, such as /data/customer"))
        return faults


def _is_pointer(text: str) -> bool:
    is_short = len(text) <= limits.SOURCE_KEY_POINTER_CHARACTERS_MAX
    return text != "" and is_short and JSON_POINTER.fullmatch(text) is not None


class SourceSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a source as requested by its owner. Times in milliseconds.

    `secrets` are the provider's, the newest first; None: keep the source's present ones. `headers` are stored with each
    event. `dedup_ms`: how long event ids are remembered.
    """

    provider: WebhookProvider
    into: SourceTarget
    secrets: tuple[str, ...] | None = None
    tolerance_ms: int = limits.SOURCE_TOLERANCE_MS_DEFAULT
    headers: tuple[str, ...] = ()
    hmac: HmacScheme | None = None
    dedup_ms: int = limits.SOURCE_DEDUP_MS_DEFAULT
    paused: bool = False

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [
            *self.into.faults(),
            *self._secret_faults(),
            *self._header_faults(),
            *self._scheme_faults(),
            *check_seconds(
                "/webhook/tolerance_seconds",
                self.tolerance_ms,
                limits.SOURCE_TOLERANCE_MS_MIN,
                limits.SOURCE_TOLERANCE_MS_MAX,
            ),
            *check_seconds(
                "/dedup_seconds",
                self.dedup_ms,
                limits.SOURCE_DEDUP_MS_MIN,
                limits.SOURCE_DEDUP_MS_MAX,
            ),
        ]
        if faults:
            raise ValidationFailed("The source's configuration is invalid.", *faults)

    def _secret_faults(self) -> list[FieldFault]:
        if self.secrets is None:
            return []
        if not 1 <= len(self.secrets) <= limits.SOURCE_SECRETS_MAX:
            detail = f"Specify 1 to {limits.SOURCE_SECRETS_MAX} secrets"
            return [FieldFault("/webhook/secrets", detail, "out_of_range")]
        low, high = limits.SOURCE_SECRET_CHARACTERS_MIN, limits.SOURCE_SECRET_CHARACTERS_MAX
        return [
            FieldFault(f"/webhook/secrets/{nth}", f"must have {low} to {high} characters")
            for nth, secret in enumerate(self.secrets)
            if not low <= len(secret) <= high or not secret.isprintable()
        ]

    def _header_faults(self) -> list[FieldFault]:
        if len(self.headers) > limits.SOURCE_HEADERS_MAX:
            detail = f"At most {limits.SOURCE_HEADERS_MAX} headers"
            return [FieldFault("/webhook/headers", detail, "too_many")]
        faults = []
        for nth, name in enumerate(self.headers):
            if not HEADER_NAME.fullmatch(name):
                faults.append(FieldFault(f"/webhook/headers/{nth}", "Invalid HTTP header name"))
            elif name.lower() in _NEVER_STORED:
                detail = f"{name} contains credentials and is never stored"
                faults.append(FieldFault(f"/webhook/headers/{nth}", detail, "not_supported"))
        return faults

    def _scheme_faults(self) -> list[FieldFault]:
        is_hmac = self.provider is WebhookProvider.HMAC
        if is_hmac and self.hmac is None:
            detail = "Specify the signature_header of the provider"
            return [FieldFault("/webhook/signature_header", detail, "missing")]
        if not is_hmac and self.hmac is not None:
            detail = 'Specify how events are signed only for the provider "hmac"'
            return [FieldFault("/webhook/provider", detail, "conflict")]
        return self.hmac.faults() if self.hmac else []


class SourceToken(msgspec.Struct, frozen=True, array_like=True):
    """Last part of a source's URL; one that was replaced expires."""

    value: str
    expires_at_ms: int | None = None


class InboundSource(msgspec.Struct, frozen=True, kw_only=True):
    """A stored source.

    Its outbox belongs to `source_id`; the first of `tokens` is the current one.
    """

    name: SourceName
    source_id: str
    spec: SourceSpec
    tokens: tuple[SourceToken, ...]
    version: int
    created_at_ms: int
    changed_at_ms: int


class SourceEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An accepted event as its outbox keeps it: the raw body and the chosen headers.

    `key` is that of the configuration at acceptance: a later one must not route the event elsewhere when its transfer is
    repeated, since the target recognizes it by its shard.
    """

    body: bytes
    content_type: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    event_id: str = ""
    received_at_ms: int = 0
    key: str = ""


class SourceFailure(msgspec.Struct, frozen=True, array_like=True):
    """A request that was rejected, and why. Nothing of its body is kept."""

    at_ms: int
    reason: str
    detail: str
    body_bytes: int
    event_id: str = ""


class SourceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of requests to a source since it was created, and of events in its outbox."""

    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    handshakes: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    last_accepted_at_ms: int | None = None
    last_rejected_at_ms: int | None = None
    waiting_since_ms: int | None = None
