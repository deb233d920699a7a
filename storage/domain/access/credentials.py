"""Credentials of callers, and their formats.

    credential                                    stored               use
    msk_{12 id}_{32 secret}{6 checksum}           SHA-256 of secret    API key: any call, until it expires or is revoked
    MSAK{16 of A-Z2-7}, 40 characters of secret   secret, encrypted    access key pair: signs calls as AWS clients do
    mst_{43 secret}{6 checksum}                   SHA-256 of token     ticket: one socket, within half a minute
    mss_{43 secret}{6 checksum}                   SHA-256 of token     session: a browser that logged in with a key

Letters and digits only (base62), so that a double click selects the whole token. The checksum is CRC-32 of the
text before it: a typo, or a truncated token, is distinguished from a wrong secret without a lookup, and a scanner
of source code finds keys by one pattern.

    live ──▶ expired      by time
      └────▶ revoked      manually; neither becomes live again

A rotation creates the next credential of a family: the same name and permissions, in parallel with the previous
one, which stays valid until its overlap has passed. At most two of a family are live.
"""

import hashlib
import re
import secrets
import zlib
from enum import StrEnum
from hmac import compare_digest

import msgspec

from storage.domain import limits
from storage.domain.access.permissions import (
    ANONYMOUS,
    GRANTS_OF,
    NOTHING,
    Action,
    Effect,
    Grant,
    Policy,
    Principal,
    Role,
)
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.names import DEFAULT_NAMESPACE, check_name
from storage.domain.quotas import Rates

KEY_PREFIX = "msk_"
PAIR_PREFIX = "MSAK"
TICKET_PREFIX = "mst_"
SESSION_PREFIX = "mss_"

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CHECKSUM_CHARACTERS = 6  # 62^6 is more than 2^32
_ID_CHARACTERS = 12
_SECRET_CHARACTERS = 32  # 190 bits: no slow hash is needed
_TOKEN_CHARACTERS = 43  # 256 bits
_PAIR_ID_CHARACTERS = 16
_PAIR_SECRET_CHARACTERS = 40
_KEY = re.compile(r"msk_([0-9A-Za-z]{12})_([0-9A-Za-z]{32})([0-9A-Za-z]{6})")
_TOKEN = re.compile(r"ms[st]_[0-9A-Za-z]{43}([0-9A-Za-z]{6})")
_PAIR_ID = re.compile(r"MSAK[A-Z2-7]{16}")
_RESOURCE = re.compile(rf"[A-Za-z0-9_.:*?-]{{1,{limits.NAME_CHARACTERS_MAX}}}")
_KEYS_FOREVER = 0


class CredentialKind(StrEnum):
    """Type of a credential.

    key: sent with every call. pair: an access key id and a secret that signs. token: from an external issuer,
    never stored.
    """

    KEY = "key"
    PAIR = "pair"
    TOKEN = "token"  # noqa: S105  a kind


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """Permissions, rates and expiry of a credential (milliseconds since 1970; None: never)."""

    roles: tuple[Role, ...] = ()
    grants: tuple[Grant, ...] = ()
    rates: Rates | None = None
    expires_at_ms: int | None = None

    @property
    def expanded(self) -> tuple[Grant, ...]:
        """All grants, including those of the roles."""
        return (*(GRANTS_OF[role] for role in self.roles), *self.grants)

    def check(self, now_ms: int) -> None:
        """Raise ValidationFailed with every fault."""
        faults = [*self._grant_faults(), *_rate_faults(self.rates)]
        if not self.roles and not self.grants:
            faults.append(FieldFault("/roles", "Specify roles, grants or both", "required"))
        if self.expires_at_ms is not None and self.expires_at_ms <= now_ms:
            faults.append(FieldFault("/expires_at", "Must be in the future", "out_of_range"))
        if faults:
            raise ValidationFailed(None, *faults)

    def _grant_faults(self) -> list[FieldFault]:
        if len(self.grants) > limits.GRANTS_MAX:
            return [FieldFault("/grants", f"At most {limits.GRANTS_MAX} grants", "too_many")]
        return [
            fault
            for number, grant in enumerate(self.grants)
            for fault in _faults_of(grant, f"/grants/{number}")
        ]


class CredentialRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request for a credential. `name` is its holder's, which may have several.

    `everywhere`: its holder may act in any namespace and manages them.
    """

    name: str
    rights: Rights
    kind: CredentialKind = CredentialKind.KEY
    all_namespaces: bool = False

    def check(self, now_ms: int) -> None:
        """Raise ValidationFailed with every fault."""
        check_name(self.name)
        self.rights.check(now_ms)


class IssuedCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A credential as seen by those who manage it: everything but its secret.

    `family` is the id of the first one of its rotations. `created_by` is a principal's name. `version` counts
    changes from 1. `last_used_at_ms` is written at most once a minute and may be lost.
    """

    id: str
    kind: CredentialKind
    name: str
    rights: Rights
    family: str
    created_at_ms: int
    changed_at_ms: int
    created_by: str
    namespace: str = DEFAULT_NAMESPACE
    all_namespaces: bool = False
    version: int = 1
    last_used_at_ms: int | None = None
    revoked_at_ms: int | None = None

    def is_live(self, now_ms: int) -> bool:
        """Return whether it is neither revoked nor expired."""
        expires_at_ms = self.rights.expires_at_ms
        expired = expires_at_ms is not None and expires_at_ms <= now_ms
        return self.revoked_at_ms is None and not expired


class Credential(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A live credential as endpoints check it.

    It is created once, and so is its policy: decisions are cached with it. `digest` is SHA-256 of an API key's
    secret, `secret` that of an access key pair. `expires_ms`: milliseconds since 1970, 0: never. `id` is empty if
    nothing is stored that could be revoked. `holder`: its principal, in its own namespace.
    """

    id: str
    kind: CredentialKind
    name: str
    namespace: str = DEFAULT_NAMESPACE
    all_namespaces: bool = False
    policy: Policy = NOTHING
    digest: bytes = b""
    secret: bytes = b""
    rates: Rates | None = None
    expires_ms: int = _KEYS_FOREVER
    holder: Principal = ANONYMOUS

    def __post_init__(self) -> None:
        holder = Principal(
            self.name,
            self.namespace,
            self.policy,
            self.id,
            self.all_namespaces,
            self.expires_ms,
            self.rates,
        )
        msgspec.structs.force_setattr(self, "holder", holder)

    @classmethod
    def of(
        cls, issued: IssuedCredential, *, digest: bytes = b"", secret: bytes = b""
    ) -> "Credential":
        """Build the credential to check from an issued one, with its digest or its secret."""
        rights = issued.rights
        return cls(
            id=issued.id,
            kind=issued.kind,
            name=issued.name,
            namespace=issued.namespace,
            all_namespaces=issued.all_namespaces,
            policy=Policy(rights.expanded),
            digest=digest,
            secret=secret,
            rates=rights.rates,
            expires_ms=rights.expires_at_ms or _KEYS_FOREVER,
        )

    @property
    def grants(self) -> tuple[Grant, ...]:
        """All grants, including those of the roles."""
        return self.policy.grants

    def principal(self, namespace: str) -> Principal:
        """Return its holder in `namespace`: its own, or any if it is valid everywhere."""
        return msgspec.structs.replace(self.holder, namespace=namespace)

    def is_verified_by(self, secret: str) -> bool:
        """Return whether this is an API key with that secret, in constant time.

        The duration does not reveal how much of the secret is right.
        """
        proved = compare_digest(digest_of(secret), self.digest or _NO_DIGEST)
        return proved and self.kind is CredentialKind.KEY

    def is_live(self, now_ms: int) -> bool:
        """Return whether it has not expired; a revoked one is not found in the first place."""
        return not self.expires_ms or now_ms < self.expires_ms

    def __repr__(self) -> str:
        return f"Credential(id={self.id!r}, kind={self.kind.value!r}, name={self.name!r})"


class NewSecret(msgspec.Struct, frozen=True):
    """New credential, shown once.

    `token` is an API key as it is sent, or the secret of an access key pair. `secret` is the part that proves it.
    """

    id: str
    kind: CredentialKind
    token: str
    secret: str

    def __repr__(self) -> str:
        return f"NewSecret(id={self.id!r})"


def new_secret(kind: CredentialKind) -> NewSecret:
    """Generate an API key or an access key pair.

    Raises ValidationFailed for a kind that is issued elsewhere.
    """
    if kind is CredentialKind.TOKEN:
        raise ValidationFailed.at("/kind", "Tokens are created by their issuer", "not_supported")
    if kind is CredentialKind.PAIR:
        pair_id = PAIR_PREFIX + _random(_BASE32, _PAIR_ID_CHARACTERS)
        secret = _random(_BASE62, _PAIR_SECRET_CHARACTERS)
        return NewSecret(pair_id, kind, secret, secret)
    key_id, secret = _random(_BASE62, _ID_CHARACTERS), _random(_BASE62, _SECRET_CHARACTERS)
    token = _with_checksum(f"{KEY_PREFIX}{key_id}_{secret}")
    return NewSecret(key_id, kind, token, secret)


def new_token(prefix: str) -> str:
    """Generate a ticket or a session token."""
    return _with_checksum(prefix + _random(_BASE62, _TOKEN_CHARACTERS))


def parse_key(token: str) -> tuple[str, str] | None:
    """Parse an API key into its id and secret.

    None if it is not a key, or its checksum is wrong.
    """
    match = _KEY.fullmatch(token)
    if match is None or not _is_checked(token):
        return None
    return match[1], match[2]


def is_token(token: str, prefix: str) -> bool:
    """Return whether the text is well formed as a ticket or a session token."""
    return token.startswith(prefix) and _TOKEN.fullmatch(token) is not None and _is_checked(token)


def could_be_id(text: str) -> bool:
    """Return whether the text is well formed as the id of a key or of an access key pair."""
    is_key = len(text) == _ID_CHARACTERS and text.isascii() and text.isalnum()
    return is_key or _PAIR_ID.fullmatch(text) is not None


def digest_of(secret: str) -> bytes:
    """Return the stored digest of a secret that is only ever compared."""
    return hashlib.sha256(secret.encode()).digest()


def covers_rates(own: Rates | None, given: Rates | None) -> bool:
    """Return whether `given` allows no higher rate than `own`, and no larger burst."""
    if own is None or all(rate is None for rate in _rates(own)):
        return True
    if given is None or given.burst_seconds > own.burst_seconds:
        return False
    return all(
        _at_most(theirs, mine) for theirs, mine in zip(_rates(given), _rates(own), strict=True)
    )


def _rates(rates: Rates) -> tuple[float | None, ...]:
    return rates.calls_per_second, rates.messages_per_second, rates.bytes_per_second


def _at_most(given: float | None, own: float | None) -> bool:
    return own is None or (given is not None and given <= own)


def _random(alphabet: str, characters: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(characters))


def _with_checksum(token: str) -> str:
    return token + _checksum(token)


def _is_checked(token: str) -> bool:
    return _checksum(token[:-_CHECKSUM_CHARACTERS]) == token[-_CHECKSUM_CHARACTERS:]


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(_BASE62))
        digits = _BASE62[digit] + digits
    return digits


_NO_DIGEST = digest_of("")


def _faults_of(grant: Grant, pointer: str) -> list[FieldFault]:
    faults = []
    if not 1 <= len(grant.actions) <= limits.GRANT_ITEMS_MAX:
        faults.append(FieldFault(f"{pointer}/actions", f"1 to {limits.GRANT_ITEMS_MAX} actions"))
    if not 1 <= len(grant.resources) <= limits.GRANT_ITEMS_MAX:
        faults.append(
            FieldFault(f"{pointer}/resources", f"1 to {limits.GRANT_ITEMS_MAX} resources")
        )
    faults += [
        FieldFault(f"{pointer}/actions/{number}", "Unknown action", "not_found")
        for number, action in enumerate(grant.actions)
        if not _names_some_action(action)
    ]
    faults += [
        FieldFault(
            f"{pointer}/resources/{number}", "Must be a name; * and ? are wildcards", "invalid"
        )
        for number, resource in enumerate(grant.resources)
        if not _RESOURCE.fullmatch(resource)
    ]
    return faults


def _names_some_action(glob: str) -> bool:
    if len(glob) > limits.NAME_CHARACTERS_MAX:
        return False
    grant = Grant(Effect.ALLOW, (glob,))
    return any(grant.names_action(action) for action in Action)


def _rate_faults(rates: Rates | None) -> list[FieldFault]:
    if rates is None:
        return []
    return [
        FieldFault(f"/rates/{field}", "Must be a number greater than 0", "out_of_range")
        for field, value in msgspec.structs.asdict(rates).items()
        if value is not None and not _is_positive(value)
    ]


def _is_positive(value: float) -> bool:
    return 0 < value <= limits.RATE_MAX
