"""OAuth 2.0 client of a webhook: settings of the client credentials grant.

RFC 6749, section 4.4. The secret is stored apart, encrypted. Definitions that are read have None in its place, and None in a put keeps it.
"""

import re
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.definitions import OTHER_HIDDEN_VALUE
from storage.domain.errors import FieldFault, ValidationFailed

POINTER = "/credentials/oauth"
"""JSON Pointer of the client in a definition."""

_VISIBLE = re.compile(r"[\x20-\x7e]+")
_SCOPE = re.compile(r"([\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*)?")
_PARAMETER_NAME = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_RESERVED = frozenset({"grant_type", "client_id", "client_secret", "scope"})


class ClientAuth(StrEnum):
    """Place of a client's id and secret in a token request (RFC 6749, section 2.3.1)."""

    BASIC = "basic"
    BODY = "body"


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Client of a token endpoint.

    `scope` has names with spaces between. `parameters` are added to the token request, such as `audience`; they are no secrets.
    """

    token_url: str
    client_id: str
    client_secret: str | None = None
    scope: str = ""
    parameters: dict[str, str] = {}
    client_auth: ClientAuth = ClientAuth.BASIC

    def __repr__(self) -> str:
        return f"OAuthClient(token_url={self.token_url!r}, client_id={self.client_id!r})"

    def faults(self) -> list[FieldFault]:
        """Return every fault except those of the URL, about which the egress rule decides."""
        texts = {"client_id": self.client_id}
        if self.client_secret is not None:
            texts["client_secret"] = self.client_secret
        faults = [fault for name, text in texts.items() for fault in _text_faults(name, text)]
        if len(self.scope) > limits.WEBHOOK_CREDENTIAL_CHARACTERS_MAX or not _SCOPE.fullmatch(
            self.scope
        ):
            detail = "must be scope names with one space between"
            faults.append(FieldFault(f"{POINTER}/scope", detail))
        return [*faults, *self._parameter_faults()]

    def _parameter_faults(self) -> list[FieldFault]:
        faults = []
        if len(self.parameters) > limits.WEBHOOK_TOKEN_PARAMETERS_MAX:
            detail = f"At most {limits.WEBHOOK_TOKEN_PARAMETERS_MAX} parameters"
            faults.append(FieldFault(f"{POINTER}/parameters", detail, "too_many"))
        for name, value in self.parameters.items():
            if not _PARAMETER_NAME.fullmatch(name):
                faults.append(FieldFault(f"{POINTER}/parameters", "Invalid name of a parameter"))
            elif name in _RESERVED:
                detail = "This parameter has its own field, or cannot be set"
                faults.append(FieldFault(f"{POINTER}/parameters/{name}", detail, "not_allowed"))
            else:
                faults += _text_faults(f"parameters/{name}", value)
        return faults


class WebhookCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials of deliveries, besides headers: an OAuth client."""

    oauth: OAuthClient

    @property
    def secret(self) -> str | None:
        """The client's secret; None if it is not known here."""
        return self.oauth.client_secret

    def with_secret(self, secret: str | None) -> "WebhookCredentials":
        """Return the credentials with another secret, or with None in its place."""
        return replace(self, oauth=replace(self.oauth, client_secret=secret))


def keep_secret(
    requested: WebhookCredentials | None, stored: WebhookCredentials | None
) -> WebhookCredentials | None:
    """Return requested credentials, with the stored secret if they have none.

    Raises ValidationFailed without one for the same client and token endpoint: a stored secret is sent nowhere else.
    """
    if requested is None or requested.secret is not None:
        return requested
    if stored is None or _client_of(stored) != _client_of(requested):
        detail = "The secret is required for a new client, and with another token URL or client id"
        raise ValidationFailed.at(f"{POINTER}/client_secret", detail, "required")
    return requested.with_secret(stored.secret)


def _client_of(credentials: WebhookCredentials) -> tuple[str, str]:
    return credentials.oauth.token_url, credentials.oauth.client_id


def redact_secret(
    before: WebhookCredentials | None, after: WebhookCredentials | None
) -> WebhookCredentials | None:
    """Return credentials before a put, with a marker in place of a secret that it replaces."""
    if before is None:
        return None
    is_replaced = after is not None and after.secret != before.secret
    return before.with_secret(OTHER_HIDDEN_VALUE if is_replaced else None)


def hide_secret(credentials: WebhookCredentials | None) -> WebhookCredentials | None:
    """Return credentials without their secret."""
    return None if credentials is None else credentials.with_secret(None)


def _text_faults(name: str, text: str) -> list[FieldFault]:
    most = limits.WEBHOOK_CREDENTIAL_CHARACTERS_MAX
    if len(text) <= most and _VISIBLE.fullmatch(text):
        return []
    return [FieldFault(f"{POINTER}/{name}", f"must be 1 to {most} printable ASCII characters")]
