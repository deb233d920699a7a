"""Trusted token issuers from the setting `jwt_issuers`: JSON, a list of objects.

[{"issuer": "https://login.example.com/", "audience": "millstream",
  "jwks_url": "https://login.example.com/keys", "namespace": "default", "roles_claim": "groups"}]
"""

import msgspec

from storage.domain.access.egress import parse_url
from storage.domain.access.permissions import Role
from storage.domain.errors import ValidationFailed
from storage.domain.names import check_name

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class JwtIssuerSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A trusted issuer, with the namespace and roles of its tokens.

    Each is fixed here or comes from a claim of the token. A claim may be a path, as `realm_access.roles`.
    """

    issuer: str
    audience: str
    jwks_url: str
    namespace: str | None = None
    namespace_claim: str | None = None
    roles: tuple[Role, ...] | None = None
    roles_claim: str | None = None

    def check(self) -> None:
        """Raise ValueError unless the issuer is complete and consistent."""
        if not self.issuer or not self.audience:
            raise ValueError("an issuer requires 'issuer' and 'audience'")
        if (self.namespace is None) == (self.namespace_claim is None):
            raise ValueError(f"issuer {self.issuer}: specify namespace or namespace_claim")
        if (self.roles is None) == (self.roles_claim is None):
            raise ValueError(f"issuer {self.issuer}: specify roles or roles_claim")
        if self.namespace is not None:
            _check_namespace(self.namespace)
        _check_url(self.jwks_url)


def read_issuers(text: str) -> tuple[JwtIssuerSetting, ...]:
    """Parse the issuers of a setting; none if it is empty. Raises ValueError."""
    if not text.strip():
        return ()
    try:
        issuers = msgspec.json.decode(text, type=tuple[JwtIssuerSetting, ...])
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    for issuer in issuers:
        issuer.check()
    if len({issuer.issuer for issuer in issuers}) < len(issuers):
        raise ValueError("an issuer is listed twice")
    return issuers


def _check_namespace(namespace: str) -> None:
    try:
        check_name(namespace)
    except ValidationFailed as error:
        raise ValueError(error.detail) from None


def _check_url(url: str) -> None:
    try:
        parsed = parse_url(url)
    except ValueError:
        raise ValueError("jwks_url is not a valid URL") from None
    is_local = parsed.scheme == "http" and parsed.host in _LOOPBACK
    if not parsed.host or parsed.userinfo:
        raise ValueError("jwks_url must have a host and no credentials")
    if parsed.scheme != "https" and not is_local:
        raise ValueError("jwks_url must use https, except on loopback")
