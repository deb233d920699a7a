"""JWTs of other issuers (RFC 7519, with RFC 8725's advice): verified, and never stored.

header: alg allowed, kid ─▶ claims, unverified: iss is a trusted issuer ─▶ its key ─▶ signature by that key's
own algorithm ─▶ iss, aud, exp, nbf ─▶ sub, namespace, roles ─▶ a principal
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jwt

from api.auth.jwks import ALGORITHMS, KeySet
from api.config.jwt_issuers import JwtIssuerSetting
from storage.concurrency.bounded_cache import BoundedCache
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
    "verify_exp": False,  # checked below with the injected clock
    "verify_nbf": False,
    "verify_iat": False,
    "enforce_minimum_key_length": True,
}


class _Trusted(NamedTuple):
    """An issuer, with its keys."""

    issuer: JwtIssuerSetting
    keys: KeySet


class _CheckedToken(NamedTuple):
    """A verified token, with the version of the keys that verified it, and its principal."""

    trusted: _Trusted
    version: int
    principal: Principal


class JwtIssuers:
    """The trusted issuers of JWTs."""

    def __init__(self, issuers: Sequence[JwtIssuerSetting], clock: Clock = _SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._trusted = {
            issuer.issuer: _Trusted(issuer, KeySet(issuer.jwks_url, clock)) for issuer in issuers
        }
        self._checked: BoundedCache[bytes, _CheckedToken] = BoundedCache(
            limits.VERIFIED_TOKENS_CACHED_MAX
        )

    async def principal_of(self, token: str) -> Principal:
        """Return the principal of a token.

        Raises Unauthenticated, which discloses nothing of the token.
        """
        if not self._trusted:
            raise Unauthenticated("Tokens are not accepted: no JWT issuer is configured.")
        if len(token) > limits.CREDENTIAL_TOKEN_CHARACTERS_MAX:
            raise Unauthenticated("The token is too long.")
        digest = hashlib.sha256(token.encode()).digest()
        checked = self._checked.get(digest)
        if checked is not None and self._is_still_valid(checked):
            return checked.principal
        trusted, principal = await self._check(token)
        self._checked[digest] = _CheckedToken(trusted, trusted.keys.version, principal)
        return principal

    def _is_still_valid(self, checked: _CheckedToken) -> bool:
        """Return whether the token has not expired and its issuer's keys are unchanged."""
        checked.trusted.keys.refresh()
        in_time = self._clock.now_ms() < checked.principal.expires_ms
        return in_time and checked.version == checked.trusted.keys.version

    async def _check(self, token: str) -> tuple[_Trusted, Principal]:
        trusted, kid = self._issuer_of(token)
        key = await trusted.keys.find(kid)
        if key is None:
            raise Unauthenticated(
                "The token's issuer does not have the signing key, or is unreachable."
            )
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
        """Return the issuer and key id that a token claims, unverified. Raises Unauthenticated."""
        try:
            header = jwt.get_unverified_header(token)
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise Unauthenticated("The token is malformed.") from None
        if header.get("alg") not in ALGORITHMS:
            raise Unauthenticated("The token's signature algorithm is not accepted.")
        issuer, kid = claims.get("iss"), header.get("kid")
        trusted = self._trusted.get(issuer) if isinstance(issuer, str) else None
        if trusted is None:
            raise Unauthenticated("The token's issuer is not trusted.")
        return trusted, kid if isinstance(kid, str) else None


def _checked_times(claims: dict[str, Any], now_ms: int) -> int:
    """Return the token's expiry in milliseconds. Raises Unauthenticated if not valid now."""
    ends_ms = _moment_ms(claims["exp"]) + limits.TOKEN_LEEWAY_MS
    begins_ms = _moment_ms(claims.get("nbf", 0)) - limits.TOKEN_LEEWAY_MS
    if now_ms >= ends_ms:
        raise Unauthenticated("The token has expired.")
    if now_ms < begins_ms:
        raise Unauthenticated("The token is not valid yet.")
    return ends_ms


def _moment_ms(date: Any) -> int:
    """Convert a NumericDate to milliseconds. Raises Unauthenticated."""
    if isinstance(date, bool) or not isinstance(date, int | float):
        raise Unauthenticated("The token is not valid.")
    if not 0 <= date <= limits.TOKEN_SECONDS_MAX:
        raise Unauthenticated("The token is not valid.")
    return int(date * limits.SECOND_MS)


def _principal(issuer: JwtIssuerSetting, claims: dict[str, Any], expires_ms: int) -> Principal:
    name = claims["sub"]
    if not name or len(name) > limits.TOKEN_SUBJECT_CHARACTERS_MAX or not name.isprintable():
        raise Unauthenticated("The token has no subject.")
    namespace = issuer.namespace or _namespace(_claim(claims, issuer.namespace_claim or ""))
    roles = issuer.roles
    if roles is None:
        roles = _roles(_claim(claims, issuer.roles_claim or ""))
    policy = Policy(tuple(GRANTS_OF[role] for role in roles))
    return Principal(name, namespace, policy, expires_ms=expires_ms)


def _claim(claims: dict[str, Any], name: str) -> Any:
    """Return the claim with that name, or at that dotted path."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _namespace(claim: Any) -> str:
    try:
        check_name(claim if isinstance(claim, str) else "")
    except ValidationFailed:
        raise Unauthenticated("The token does not specify a namespace.") from None
    return str(claim)


def _roles(claim: Any) -> tuple[Role, ...]:
    """Return the roles in a claim, ignoring the issuer's other groups."""
    names = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return tuple(_ROLES[word] for word in names if isinstance(word, str) and word in _ROLES)
