"""What callers show to say who they are, and the words that it is spelled in.

    word                                          kept of it           good for
    msk_{12 id}_{32 secret}{6 checksum}           SHA-256 of secret    API key: any call, until it ends or is revoked
    MSAK{16 of A-Z2-7}, 40 characters of secret   secret, encrypted    pair: signs calls as AWS's clients do
    mst_{43 secret}{6 checksum}                   SHA-256 of word      ticket: one socket, within half a minute
    mss_{43 secret}{6 checksum}                   SHA-256 of word      session: a browser that logged in with a key

Letters and digits only (base62), so that a double click takes the whole word. The checksum is CRC-32 of what
stands before it: a typo, or a word cut off, is told from a wrong secret without asking anyone, and a scanner of
source code finds keys by one pattern.

    live ──▶ expired      by time
      └────▶ revoked      by hand; neither lives again

A rotation makes the next credential of a family: the same name and rights, beside the one before, which goes on
until its overlap is over. At most two of a family are live.
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
    GRANTS_OF,
    NOBODY,
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
_WORD_CHARACTERS = 43  # 256 bits
_PAIR_ID_CHARACTERS = 16
_PAIR_SECRET_CHARACTERS = 40
_KEY = re.compile(r"msk_([0-9A-Za-z]{12})_([0-9A-Za-z]{32})([0-9A-Za-z]{6})")
_WORD = re.compile(r"ms[st]_[0-9A-Za-z]{43}([0-9A-Za-z]{6})")
_PAIR_ID = re.compile(r"MSAK[A-Z2-7]{16}")
_RESOURCE = re.compile(rf"[A-Za-z0-9_.*?-]{{1,{limits.NAME_CHARACTERS_MAX}}}")
_KEYS_FOREVER = 0


class CredentialKind(StrEnum):
    """key: sent with every call. pair: an id and a secret that signs. token: of an issuer elsewhere, never stored."""

    KEY = "key"
    PAIR = "pair"
    TOKEN = "token"  # noqa: S105  a kind


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """What a credential's holder may do, how fast, and until when (milliseconds since 1970; None: always)."""

    roles: tuple[Role, ...] = ()
    grants: tuple[Grant, ...] = ()
    rates: Rates | None = None
    expires_at_ms: int | None = None

    @property
    def expanded(self) -> tuple[Grant, ...]:
        """All grants, those of the roles among them."""
        return (*(GRANTS_OF[role] for role in self.roles), *self.grants)

    def check(self, now_ms: int) -> None:
        """Raise ValidationFailed with every fault."""
        faults = [*self._grant_faults(), *_rate_faults(self.rates)]
        if not self.roles and not self.grants:
            faults.append(FieldFault("/roles", "Give roles, grants or both", "required"))
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
    """A credential that someone asks for. `name` is its holder's, which may have several.

    `everywhere`: its holder may act in any namespace and manages them.
    """

    name: str
    rights: Rights
    kind: CredentialKind = CredentialKind.KEY
    everywhere: bool = False

    def check(self, now_ms: int) -> None:
        """Raise ValidationFailed with every fault."""
        check_name(self.name)
        self.rights.check(now_ms)


class IssuedCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A credential as those who manage it see it: everything but its secret.

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
    everywhere: bool = False
    version: int = 1
    last_used_at_ms: int | None = None
    revoked_at_ms: int | None = None

    def is_live(self, now_ms: int) -> bool:
        """Neither revoked nor expired."""
        expires_at_ms = self.rights.expires_at_ms
        expired = expires_at_ms is not None and expires_at_ms <= now_ms
        return self.revoked_at_ms is None and not expired


class Credential(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A live credential as doors check it. It is made once, and so is its policy: decisions stay with it.

    `digest` is SHA-256 of an API key's secret, `secret` a pair's own. `expires_ms`: milliseconds since 1970, 0:
    never. `id` is empty where nothing is stored that could be revoked. `holder`: whoever shows it, in its own namespace.
    """

    id: str
    kind: CredentialKind
    name: str
    namespace: str = DEFAULT_NAMESPACE
    everywhere: bool = False
    policy: Policy = NOTHING
    digest: bytes = b""
    secret: bytes = b""
    rates: Rates | None = None
    expires_ms: int = _KEYS_FOREVER
    holder: Principal = NOBODY

    def __post_init__(self) -> None:
        holder = Principal(
            self.name,
            self.namespace,
            self.policy,
            self.id,
            self.everywhere,
            self.expires_ms,
            self.rates,
        )
        msgspec.structs.force_setattr(self, "holder", holder)

    @classmethod
    def of(
        cls, issued: IssuedCredential, *, digest: bytes = b"", secret: bytes = b""
    ) -> "Credential":
        """What was issued, to be checked against its digest, or with its secret."""
        rights = issued.rights
        return cls(
            id=issued.id,
            kind=issued.kind,
            name=issued.name,
            namespace=issued.namespace,
            everywhere=issued.everywhere,
            policy=Policy(rights.expanded),
            digest=digest,
            secret=secret,
            rates=rights.rates,
            expires_ms=rights.expires_at_ms or _KEYS_FOREVER,
        )

    @property
    def grants(self) -> tuple[Grant, ...]:
        """All grants, those of the roles among them."""
        return self.policy.grants

    def principal(self, namespace: str) -> Principal:
        """Its holder, in `namespace`: its own, or any where it is everywhere."""
        return msgspec.structs.replace(self.holder, namespace=namespace)

    def is_proved_by(self, secret: str) -> bool:
        """Whether this is an API key with that secret, in a time that does not tell how much of it is right."""
        proved = compare_digest(digest_of(secret), self.digest or _NO_DIGEST)
        return proved and self.kind is CredentialKind.KEY

    def is_live(self, now_ms: int) -> bool:
        """Not expired; a revoked one is not found to begin with."""
        return not self.expires_ms or now_ms < self.expires_ms

    def __repr__(self) -> str:
        return f"Credential(id={self.id!r}, kind={self.kind.value!r}, name={self.name!r})"


class NewSecret(msgspec.Struct, frozen=True):
    """Shown once: `word` is an API key as it is sent, or a pair's secret. `secret` is what proves it."""

    id: str
    kind: CredentialKind
    word: str
    secret: str

    def __repr__(self) -> str:
        return f"NewSecret(id={self.id!r})"


def new_secret(kind: CredentialKind) -> NewSecret:
    """A new API key, or a new pair. Raises ValidationFailed for what is not ours to make."""
    if kind is CredentialKind.TOKEN:
        raise ValidationFailed.at("/kind", "Tokens are made by their issuer", "not_supported")
    if kind is CredentialKind.PAIR:
        pair_id = PAIR_PREFIX + _random(_BASE32, _PAIR_ID_CHARACTERS)
        secret = _random(_BASE62, _PAIR_SECRET_CHARACTERS)
        return NewSecret(pair_id, kind, secret, secret)
    key_id, secret = _random(_BASE62, _ID_CHARACTERS), _random(_BASE62, _SECRET_CHARACTERS)
    word = _with_checksum(f"{KEY_PREFIX}{key_id}_{secret}")
    return NewSecret(key_id, kind, word, secret)


def new_word(prefix: str) -> str:
    """A ticket or a session."""
    return _with_checksum(prefix + _random(_BASE62, _WORD_CHARACTERS))


def parse_key(word: str) -> tuple[str, str] | None:
    """The id and the secret of an API key; None where it is none, or its checksum is wrong."""
    found = _KEY.fullmatch(word)
    if found is None or not _is_checked(word):
        return None
    return found[1], found[2]


def is_word(word: str, prefix: str) -> bool:
    """Whether this could be a ticket, or a session."""
    return word.startswith(prefix) and _WORD.fullmatch(word) is not None and _is_checked(word)


def could_be_id(word: str) -> bool:
    """Whether this could be the id of a key or of a pair."""
    is_key = len(word) == _ID_CHARACTERS and word.isascii() and word.isalnum()
    return is_key or _PAIR_ID.fullmatch(word) is not None


def could_be_name(word: str) -> bool:
    """Whether this is text that names sort among: printable ASCII."""
    return word.isascii() and (word == "" or word.isprintable())


def digest_of(secret: str) -> bytes:
    """What is kept of a secret that is only ever compared."""
    return hashlib.sha256(secret.encode()).digest()


def covers_rates(own: Rates | None, given: Rates | None) -> bool:
    """Whether `given` lets nothing pass faster than `own` does, nor more at once."""
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


def _with_checksum(word: str) -> str:
    return word + _checksum(word)


def _is_checked(word: str) -> bool:
    return _checksum(word[:-_CHECKSUM_CHARACTERS]) == word[-_CHECKSUM_CHARACTERS:]


def _checksum(word: str) -> str:
    number, digits = zlib.crc32(word.encode()), ""
    for _ in range(_CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(_BASE62))
        digits = _BASE62[digit] + digits
    return digits


_NO_DIGEST = digest_of("")


def _faults_of(grant: Grant, at: str) -> list[FieldFault]:
    faults = []
    if not 1 <= len(grant.actions) <= limits.GRANT_WORDS_MAX:
        faults.append(FieldFault(f"{at}/actions", f"1 to {limits.GRANT_WORDS_MAX} actions"))
    if not 1 <= len(grant.resources) <= limits.GRANT_WORDS_MAX:
        faults.append(FieldFault(f"{at}/resources", f"1 to {limits.GRANT_WORDS_MAX} resources"))
    faults += [
        FieldFault(f"{at}/actions/{number}", "No action is named so", "not_found")
        for number, action in enumerate(grant.actions)
        if not _names_some_action(action)
    ]
    faults += [
        FieldFault(f"{at}/resources/{number}", "A name in which * and ? may stand", "invalid")
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
        FieldFault(f"/rates/{field}", "Must be more than 0, and a number", "out_of_range")
        for field, value in msgspec.structs.asdict(rates).items()
        if value is not None and not _is_positive(value)
    ]


def _is_positive(value: float) -> bool:
    return 0 < value <= limits.RATE_MAX
