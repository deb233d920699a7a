"""Credential schemas. Secrets are returned only when they are created."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

import msgspec
from pydantic import AwareDatetime, BaseModel, Field, model_validator

from api.native.fields import moment_ms, rfc3339
from api.native.former_names import former_field, former_name
from api.rest.schema_base import Config, Seconds, Time, in_seconds, merged
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


class GrantConfig(Config):
    """Allows or denies actions on resource names. A deny overrides every allow."""

    effect: Annotated[Effect, Field(strict=False)]
    actions: Annotated[
        list[str], Field(description="Actions such as `queue:send`; `*` and `?` are wildcards.")
    ]
    resources: Annotated[
        list[str],
        Field(description="Names of queues, streams and other resources, such as `orders-*`."),
    ] = ["*"]

    def to_domain(self) -> Grant:
        """Return the grant, which the engine validates."""
        return Grant(self.effect, tuple(self.actions), tuple(self.resources))

    @classmethod
    def from_domain(cls, grant: Grant) -> Self:
        return cls(
            effect=grant.effect, actions=list(grant.actions), resources=list(grant.resources)
        )


class KeyRates(Config):
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

    @classmethod
    def from_domain(cls, rates: Rates) -> Self:
        return cls(**msgspec.structs.asdict(rates))


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
        before = KeyRights(**rights_fields(rights)).model_dump()
        return KeyRights(**merged(before, self.model_dump(exclude_unset=True))).rights()


def rights_fields(rights: Rights) -> dict[str, Any]:
    """Return permissions as their fields on the wire."""
    expires_at_ms, rates = rights.expires_at_ms, rights.rates
    return {
        "roles": list(rights.roles),
        "grants": [GrantConfig.from_domain(grant) for grant in rights.grants],
        "rates": None if rates is None else KeyRates.from_domain(rates),
        "expires_at": None
        if expires_at_ms is None
        else datetime.fromisoformat(rfc3339(expires_at_ms)),
    }


class KeyOut(BaseModel):
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
    def from_domain(cls, issued: IssuedCredential) -> Self:
        return cls(**_key_fields(issued))


class KeyCreated(KeyOut):
    """A new credential. Its secret is not returned again.

    The secret is an API key, or the secret access key of a pair.
    """

    secret: str

    @classmethod
    def of(cls, issued: IssuedCredential, secret: str) -> Self:
        return cls(**_key_fields(issued), secret=secret)


def _key_fields(issued: IssuedCredential) -> dict[str, Any]:
    return rights_fields(issued.rights) | {
        "id": issued.id,
        "kind": KeyKind(issued.kind),
        "name": issued.name,
        "namespace": issued.namespace,
        "all_namespaces": issued.all_namespaces,
        "family": issued.family,
        "version": issued.version,
        "created_by": issued.created_by,
        "created_at": rfc3339(issued.created_at_ms),
        "changed_at": rfc3339(issued.changed_at_ms),
        "expires_at": _optional_time(issued.rights.expires_at_ms),
        "last_used_at": _optional_time(issued.last_used_at_ms),
        "revoked_at": _optional_time(issued.revoked_at_ms),
    }


def _optional_time(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


class KeyPage(BaseModel):
    """Credentials by name. `next_cursor` is null on the last page; a page can be short."""

    items: list[KeyOut]
    next_cursor: str | None


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


class LoggedInOut(BaseModel):
    """A session, carried by the cookie of the response. It ends early after 8 idle hours."""

    name: str
    namespace: str
    expires_at: Time

    @classmethod
    def from_domain(cls, session: NewSession) -> Self:
        credential = session.credential
        return cls(
            name=credential.name,
            namespace=credential.namespace,
            expires_at=rfc3339(session.ends_at_ms),
        )


class WhoamiOut(BaseModel):
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
    def from_domain(cls, caller: Principal) -> Self:
        return cls(
            name=caller.name,
            namespace=caller.namespace,
            all_namespaces=caller.all_namespaces,
            credential=caller.credential or None,
            grants=[GrantConfig.from_domain(grant) for grant in caller.policy.grants],
            rates=None if caller.rates is None else KeyRates.from_domain(caller.rates),
            expires_at=_optional_time(caller.expires_ms or None),
        )
