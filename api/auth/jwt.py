"""Tokens of other issuers (JWT, RFC 7519, by RFC 8725's advice): checked here, and never stored.

header: alg allowed, kid ─▶ claims, not believed yet: iss is one of ours ─▶ its key ─▶ signature by that key's
own algorithm ─▶ iss, aud, exp, nbf ─▶ sub, namespace, roles ─▶ a principal
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jwt

from api.auth.jwks import ALGORITHMS, KeySet
from api.config.jwt_issuers import Issuer
from storage.domain import limits
from storage.domain.access.permissions import GRANTS_OF, Policy, Principal, Role
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import Unauthenticated, ValidationFailed
from storage.domain.names import check_name

_SYSTEM_CLOCK = SystemClock()
_ROLES = {role.value: role for role in Role}
_REQUIRED = ["exp", "iss", "aud", "sub"]
_OPTIONS: Any = {
    "require": _REQUIRED,
    "verify_exp": False,  # by our own clock, below
    "verify_nbf": False,
    "verify_iat": False,
    "enforce_minimum_key_length": True,
}


class _Trusted(NamedTuple):
    """An issuer, and its keys."""

    issuer: Issuer
    keys: KeySet


class _Checked(NamedTuple):
    """A token that was checked, with keys of which version, and whom it makes its holder."""

    trusted: _Trusted
    version: int
    principal: Principal


class JwtIssuers:
    """Those whose tokens are taken."""

    def __init__(self, issuers: Sequence[Issuer], clock: Clock = _SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._trusted = {
            issuer.issuer: _Trusted(issuer, KeySet(issuer.jwks_url, clock)) for issuer in issuers
        }
        self._checked: dict[bytes, _Checked] = {}

    async def principal_of(self, token: str) -> Principal:
        """Who a token speaks of. Raises Unauthenticated, which tells nothing of the token."""
        if not self._trusted:
            raise Unauthenticated("Tokens of other issuers are not taken here.")
        if len(token) > limits.CREDENTIAL_WORD_CHARACTERS_MAX:
            raise Unauthenticated("The token is too long.")
        digest = hashlib.sha256(token.encode()).digest()
        checked = self._checked.get(digest)
        if checked is not None and self._still_holds(checked):
            return checked.principal
        trusted, principal = await self._check(token)
        if len(self._checked) >= limits.CREDENTIALS_REMEMBERED_MAX:
            self._checked.clear()
        self._checked[digest] = _Checked(trusted, trusted.keys.version, principal)
        return principal

    def _still_holds(self, checked: _Checked) -> bool:
        """Whether neither its time is over nor its issuer's keys are others."""
        checked.trusted.keys.refresh()
        in_time = self._clock.now_ms() < checked.principal.expires_ms
        return in_time and checked.version == checked.trusted.keys.version

    async def _check(self, token: str) -> tuple[_Trusted, Principal]:
        trusted, kid = self._issuer_of(token)
        key = await trusted.keys.find(kid)
        if key is None:
            raise Unauthenticated("The token's issuer has no such key, or cannot be asked.")
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=trusted.issuer.audience,
                issuer=trusted.issuer.issuer,
                options=_OPTIONS,
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise Unauthenticated("The token is not valid.") from None
        expires_ms = _checked_times(claims, self._clock.now_ms())
        return trusted, _principal(trusted.issuer, claims, expires_ms)

    def _issuer_of(self, token: str) -> tuple[_Trusted, str | None]:
        """Whom a token says that it is from, and by which key. Raises Unauthenticated."""
        try:
            header = jwt.get_unverified_header(token)
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise Unauthenticated("The token cannot be read.") from None
        if header.get("alg") not in ALGORITHMS:
            raise Unauthenticated("The token is signed in a way that is not taken.")
        issuer, kid = claims.get("iss"), header.get("kid")
        trusted = self._trusted.get(issuer) if isinstance(issuer, str) else None
        if trusted is None:
            raise Unauthenticated("The token is of an issuer that is not known here.")
        return trusted, kid if isinstance(kid, str) else None


def _checked_times(claims: dict[str, Any], now_ms: int) -> int:
    """When the token ends, in milliseconds. Raises Unauthenticated unless it is its time."""
    ends_ms = _moment_ms(claims["exp"]) + limits.TOKEN_LEEWAY_MS
    begins_ms = _moment_ms(claims.get("nbf", 0)) - limits.TOKEN_LEEWAY_MS
    if now_ms >= ends_ms:
        raise Unauthenticated("The token has expired.")
    if now_ms < begins_ms:
        raise Unauthenticated("The token is not valid yet.")
    return ends_ms


def _moment_ms(told: Any) -> int:
    """A NumericDate in milliseconds. Raises Unauthenticated."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        raise Unauthenticated("The token is not valid.")
    if not 0 <= told <= limits.TOKEN_SECONDS_MAX:
        raise Unauthenticated("The token is not valid.")
    return int(told * limits.SECOND_MS)


def _principal(issuer: Issuer, claims: dict[str, Any], expires_ms: int) -> Principal:
    name = claims["sub"]
    if not name or len(name) > limits.TOKEN_SUBJECT_CHARACTERS_MAX or not name.isprintable():
        raise Unauthenticated("The token names nobody.")
    namespace = issuer.namespace or _namespace(_claim(claims, issuer.namespace_claim or ""))
    roles = issuer.roles
    if roles is None:
        roles = _roles(_claim(claims, issuer.roles_claim or ""))
    policy = Policy(tuple(GRANTS_OF[role] for role in roles))
    return Principal(name, namespace, policy, expires_ms=expires_ms)


def _claim(claims: dict[str, Any], name: str) -> Any:
    """A claim of that name, or at the end of that path."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _namespace(told: Any) -> str:
    try:
        check_name(told if isinstance(told, str) else "")
    except ValidationFailed:
        raise Unauthenticated("The token names no namespace.") from None
    return str(told)


def _roles(told: Any) -> tuple[Role, ...]:
    """The roles among the words of a claim; an issuer has groups that mean nothing here."""
    words = told.split() if isinstance(told, str) else told if isinstance(told, list) else []
    return tuple(_ROLES[word] for word in words if isinstance(word, str) and word in _ROLES)
