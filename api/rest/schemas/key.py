"""Credential schemas. Secrets are returned only when they are created."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import AwareDatetime, BaseModel, Field, model_validator

from api.native.fields import moment_ms, rfc3339
from api.native.former_names import former_field, former_name
from api.rest.field_map import Mapped, MappedConfig, wire_fields
from api.rest.schema_base import Config, ListPage, Seconds, Time, in_seconds, merged
from storage.access.sessions import NewSession
from storage.domain import limits
from storage.domain.access.credentials import (
    CredentialKind,
    CredentialRequest,
    IssuedCredential,
    Rights,
)
from storage.domain.access.permissions import Effect, Grant, Principal, Role
from storage.domain.quotas import Rates

Name = Annotated[
    str,
    Field(
        description="Name of the principal. Several keys can have the same name.",
        pattern=r"^[A-Za-z0-9_.-]{1,80}$",
    ),
]
Expiry = Annotated[
    AwareDatetime | None,
    Field(strict=False, description="Expiry; null: valid until revoked."),
]


class GrantConfig(MappedConfig):
    """Allows or denies actions on resource names. A deny overrides every allow."""

    domain = Grant

    effect: Annotated[Effect, Field(strict=False)]
    actions: Annotated[
        list[str], Field(description="Actions such as `queue:send`; `*` and `?` are wildcards.")
    ]
    resources: Annotated[
        list[str],
        Field(description="Names of queues, streams and other resources, such as `orders-*`."),
    ] = ["*"]


class KeyRates(MappedConfig):
    """Rate limits of this credential, per second; null: no limit of its own."""

    calls_per_second: float | None = None
    messages_per_second: float | None = None
    bytes_per_second: float | None = None
    burst_seconds: Annotated[
        float | None, Field(description="Burst size, in seconds at the full rate.")
    ] = 1.0

    def to_domain(self) -> Rates:
        """Return the rates, which the engine validates."""
        given = self.model_dump()
        return Rates(**{name: value for name, value in given.items() if value is not None})


class KeyRights(Config):
    """Permissions, rate limits and expiry of a credential: roles, grants or both."""

    roles: list[Annotated[Role, Field(strict=False)]] = []
    grants: list[GrantConfig] = []
    rates: KeyRates | None = None
    expires_at: Expiry = None

    def rights(self) -> Rights:
        """Return the permissions, which the engine validates."""
        return Rights(
            roles=tuple(dict.fromkeys(self.roles)),
            grants=tuple(grant.to_domain() for grant in self.grants),
            rates=None if self.rates is None else self.rates.to_domain(),
            expires_at_ms=None if self.expires_at is None else moment_ms(self.expires_at),
        )


class KeyKind(StrEnum):
    """Type of a credential.

    `key`: an API key that is sent with every call. `access_key`: an access key pair that signs calls, as AWS clients
    do. `pair`: former name of `access_key`; responses of this release still have it. `token`: from an external issuer,
    never stored.
    """

    KEY = "key"
    ACCESS_KEY = "access_key"
    PAIR = "pair"
    TOKEN = "token"  # noqa: S105  a kind

    def to_domain(self) -> CredentialKind:
        return CredentialKind.PAIR if self is KeyKind.ACCESS_KEY else CredentialKind(self.value)


class KeyConfig(KeyRights):
    """A credential to create."""

    name: Name
    kind: Annotated[KeyKind, Field(strict=False)] = KeyKind.KEY
    all_namespaces: Annotated[
        bool,
        Field(
            description="Grants access to all namespaces. Only an administrator of all "
            "namespaces can set it."
        ),
    ] = False
    everywhere: Annotated[bool, former_field("all_namespaces")] = False

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        both = {"all_namespaces", "everywhere"} <= self.model_fields_set
        if both and self.all_namespaces is not self.everywhere:
            raise ValueError("all_namespaces and its former name everywhere differ; specify one")
        return self

    def to_domain(self) -> CredentialRequest:
        """Return the request, which the engine validates."""
        return CredentialRequest(
            name=self.name,
            rights=self.rights(),
            kind=self.kind.to_domain(),
            all_namespaces=self.all_namespaces or self.everywhere,
        )


class KeyPatch(Config):
    """Changes to a credential's permissions (a JSON Merge Patch); null removes a field."""

    roles: list[Annotated[Role, Field(strict=False)]] | None = None
    grants: list[GrantConfig] | None = None
    rates: KeyRates | None = None
    expires_at: Expiry = None

    def apply(self, rights: Rights) -> Rights:
        """Return the permissions after the change."""
        before = KeyRights(**wire_fields(KeyRights, rights)).model_dump()
        return KeyRights(**merged(before, self.model_dump(exclude_unset=True))).rights()


class KeyOut(Mapped):
    """A credential without its secret.

    `version` is its ETag; `family` is the first of its rotations. `last_used_at` can lag by up to one minute.
    """

    id: str
    kind: KeyKind
    name: str
    namespace: str
    all_namespaces: bool
    everywhere: ClassVar[Any] = former_name("all_namespaces", bool)
    roles: list[Role]
    grants: list[GrantConfig]
    rates: KeyRates | None
    family: str
    version: int
    created_by: str
    created_at: Time
    changed_at: Time
    expires_at: Time | None
    last_used_at: Time | None
    revoked_at: Time | None

    @classmethod
    def from_domain(cls, value: IssuedCredential, **others: Any) -> Self:
        kind = KeyKind(value.kind)
        return cls.mapped(value.rights, value, kind=kind, **others)


class KeyCreated(KeyOut):
    """A new credential. Its secret is not returned again.

    The secret is an API key, or the secret access key of a pair.
    """

    secret: str


class KeyPage(ListPage[KeyOut]):
    """Credentials by name. `next_cursor` is null on the last page; a page can be short."""


class KeyRotation(Config):
    """The overlap period of the current and the new credential."""

    overlap_seconds: Annotated[
        Seconds, Field(description="0 to 30 days; 0: the old key expires immediately.")
    ] = in_seconds(limits.CREDENTIAL_OVERLAP_MS_DEFAULT)


class TicketOut(BaseModel):
    """A single-use token, valid for 30 seconds, that authenticates a WebSocket in a browser.

    For browsers, which cannot send headers with a WebSocket.
    """

    ticket: str
    expires_at: Time


class LogIn(Config):
    """The API key to log in with."""

    api_key: Annotated[
        str | None,
        Field(max_length=200, description="Default: the credential of this call."),
    ] = None


class LoggedInOut(Mapped):
    """A session, carried by the cookie of the response. It ends early after 8 idle hours."""

    name: str
    namespace: str
    expires_at: Time

    @classmethod
    def from_domain(cls, value: NewSession, **others: Any) -> Self:
        expires_at = rfc3339(value.ends_at_ms)
        return cls.mapped(value.credential, expires_at=expires_at, **others)


class WhoamiOut(Mapped):
    """The caller's identity, and its permissions in the namespace.

    `credential` is null if no stored credential is involved.
    """

    name: str
    namespace: str
    all_namespaces: bool
    everywhere: ClassVar[Any] = former_name("all_namespaces", bool)
    credential: str | None
    grants: list[GrantConfig]
    rates: KeyRates | None
    expires_at: Time | None

    @classmethod
    def from_domain(cls, value: Principal, **others: Any) -> Self:
        return cls.mapped(
            value,
            credential=value.credential or None,
            grants=[GrantConfig.from_domain(grant) for grant in value.policy.grants],
            expires_at=rfc3339(value.expires_ms) if value.expires_ms else None,
            **others,
        )
