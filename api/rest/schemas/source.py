"""Source schemas: configuration, counters, rejected requests, received events."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.native.fields import to_ms
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import Mapped, MappedConfig, MappedDefinition, MappedDefinitionConfig
from api.rest.schema_base import Config, ListPage, Seconds, Time, in_seconds
from storage.domain import limits
from storage.domain.definitions import HIDDEN_VALUE, OTHER_HIDDEN_VALUE
from storage.domain.sources.source import (
    HmacAlgorithm,
    HmacScheme,
    InboundSource,
    SignatureEncoding,
    SourceSpec,
    SourceTarget,
    WebhookProvider,
)

HeaderName = Annotated[str, Field(max_length=128)]

_SCHEME_FIELDS = HmacScheme.__struct_fields__


class _WebhookFields(Mapped):
    """Base of schemas that show how requests are verified."""

    @classmethod
    def from_domain(cls, value: SourceSpec, **others: Any) -> Self:
        """Return the fields of a specification, with markers in place of its secrets."""
        secrets = [
            OTHER_HIDDEN_VALUE if secret == OTHER_HIDDEN_VALUE else HIDDEN_VALUE
            for secret in value.secrets or ()
        ]
        header = value.hmac.signature_header if value.hmac else None
        scheme = value.hmac or HmacScheme()
        return cls.mapped(value, scheme, secrets=secrets, signature_header=header, **others)


class SourceWebhook(_WebhookFields, Config):
    """Provider of the events, and how its requests are verified."""

    provider: Annotated[
        WebhookProvider,
        Field(
            strict=False,
            description="`standard_webhooks`, `stripe`, `github`, `slack`, or `hmac` for any other provider that signs the body.",
        ),
    ]
    secrets: Annotated[
        list[str] | None,
        Field(
            description="Secrets that the provider signs with: one, or two during a rotation. They are stored "
            "encrypted and never returned; if omitted, they are unchanged."
        ),
    ] = None
    tolerance_seconds: Annotated[
        Seconds,
        Field(description="Maximum age of a signature, for providers that sign the time."),
    ] = in_seconds(limits.SOURCE_TOLERANCE_MS_DEFAULT)
    headers: Annotated[
        list[HeaderName],
        Field(
            description="Request headers that are stored with each event, such as `X-GitHub-Event`."
        ),
    ] = []
    signature_header: Annotated[
        HeaderName | None, Field(description="`hmac` only: header with the signature.")
    ] = None
    algorithm: Annotated[
        HmacAlgorithm, Field(strict=False, description="`hmac` only: hash function of the HMAC.")
    ] = HmacAlgorithm.SHA256
    encoding: Annotated[
        SignatureEncoding,
        Field(strict=False, description="`hmac` only: encoding of the signature."),
    ] = SignatureEncoding.HEX
    prefix: Annotated[
        str,
        Field(
            max_length=32, description="`hmac` only: text before the signature, such as `sha256=`."
        ),
    ] = ""
    timestamp_header: Annotated[
        HeaderName | None,
        Field(
            description="`hmac` only: header with the time in seconds; the signature then covers `<time>.<body>`."
        ),
    ] = None
    id_header: Annotated[
        HeaderName | None,
        Field(description="`hmac` only: header with the event's id, for deduplication."),
    ] = None

    def scheme(self) -> HmacScheme | None:
        """Return the scheme of the fields for `hmac`, also for a provider that has none."""
        fields = {name: getattr(self, name) for name in _SCHEME_FIELDS}
        is_default = all(fields[name] == type(self).model_fields[name].default for name in fields)
        if is_default or (self.provider is WebhookProvider.HMAC and self.signature_header is None):
            return None
        return HmacScheme(**{name: value for name, value in fields.items() if value is not None})


class SourceInto(MappedConfig):
    """Queue or stream that receives the events."""

    domain = SourceTarget

    queue: str | None = None
    stream: str | None = None
    key: Annotated[
        str | None,
        Field(
            description="JSON Pointer into the body, such as `/data/customer`. Its value is the record key, or in "
            "a queue the message group."
        ),
    ] = None


class SourceConfig(MappedDefinitionConfig):
    """The complete configuration of a source."""

    webhook: SourceWebhook
    into: SourceInto
    dedup_seconds: Annotated[
        Seconds,
        Field(description="Period in which an event that is sent again is recognized by its id."),
    ] = in_seconds(limits.SOURCE_DEDUP_MS_DEFAULT)

    @classmethod
    def from_domain(cls, value: SourceSpec, **others: Any) -> Self:
        """Return the configuration of a specification, without its secrets."""
        return cls.mapped(value, webhook=SourceWebhook.from_domain(value), **others)

    def to_domain(self) -> SourceSpec:
        """Return the specification, which the engine validates."""
        webhook = self.webhook
        return SourceSpec(
            provider=webhook.provider,
            secrets=None if webhook.secrets is None else tuple(webhook.secrets),
            tolerance_ms=to_ms(webhook.tolerance_seconds),
            headers=tuple(webhook.headers),
            hmac=webhook.scheme(),
            into=self.into.to_domain(),
            dedup_ms=to_ms(self.dedup_seconds),
        )

    def comparable(self) -> Self:
        if self.webhook.secrets is None:
            return self
        hidden = [HIDDEN_VALUE for _ in self.webhook.secrets]
        webhook = self.webhook.model_copy(update={"secrets": hidden})
        return self.model_copy(update={"webhook": webhook})


class SourceWebhookOut(_WebhookFields):
    """Provider of the events; `secrets` shows how many there are."""

    provider: WebhookProvider
    secrets: list[str]
    tolerance_seconds: Seconds
    headers: list[str]
    signature_header: str | None
    algorithm: HmacAlgorithm
    encoding: SignatureEncoding
    prefix: str
    timestamp_header: str | None
    id_header: str | None


class SourceIntoOut(Mapped):
    """Queue or stream that receives the events."""

    queue: str | None
    stream: str | None
    key: str | None


class SourceOut(MappedDefinition):
    """A source: its configuration and its version, which is the ETag."""

    name: str
    webhook: SourceWebhookOut
    into: SourceIntoOut
    dedup_seconds: Seconds
    paused: bool
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, value: InboundSource, **others: Any) -> Self:
        webhook = SourceWebhookOut.from_domain(value.spec)
        return super().from_domain(value, webhook=webhook, **others)


EventPath = Annotated[
    str,
    Field(
        description="Path of the URL that the provider posts to, behind the address of this service. It is a "
        "credential: requests to it need no key, only the provider's signature."
    ),
]


class SourceStored(PutOutcome, SourceOut):
    """A source after a PUT, and the path that receives its events; null after a dry run."""

    path: EventPath | None


class SourcePage(ListPage[SourceOut]):
    """Sources by name."""


class SourceUrl(BaseModel):
    """Path that receives the events of a source."""

    path: EventPath
    old_path_expires_at: Time | None = None


class RotateTokenIn(Config):
    """Overlap period in which the previous path is also valid."""

    overlap_seconds: Annotated[
        Seconds, Field(description="0 to 30 days; 0: the old path is invalid immediately.")
    ] = in_seconds(limits.DAY_MS)


class SourceStats(Mapped):
    """Numbers of requests since the source was created, and the waiting events.

    `failure`: why events are not delivered to the target, as this process last saw it.
    """

    accepted: int
    duplicates: int
    rejected: int
    handshakes: int
    waiting: int
    waiting_bytes: int
    last_accepted_at: Time | None
    last_rejected_at: Time | None
    failure: str


class SourceFailureOut(Mapped):
    """A request that was rejected.

    `reason` is a stable code. Nothing of the body is kept.
    """

    at: Time
    reason: str
    detail: str
    body_bytes: int


class SourceFailures(BaseModel):
    """The last 100 rejected requests, the newest first."""

    items: list[SourceFailureOut]


class ReceivedEvent(BaseModel):
    """An event that is on disk.

    `duplicate`: it had been accepted before, and is not delivered again.
    """

    id: Annotated[str, Field(description="The provider's event id; empty if it gave none.")]
    duplicate: bool
