"""Credentials of webhooks and of routes to URLs."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field

from api.rest.field_map import MappedConfig, domain_value
from storage.domain.access.oauth import ClientAuth, OAuthClient, WebhookCredentials
from storage.domain.definitions import HIDDEN_VALUE, OTHER_HIDDEN_VALUE


class OauthClientConfig(MappedConfig):
    """OAuth 2.0 client credentials (RFC 6749, section 4.4).

    Each delivery has the header `Authorization: Bearer` with an access token, which is fetched from `token_url` with a POST and
    used until shortly before its end.
    """

    domain = OAuthClient

    token_url: Annotated[
        str,
        Field(
            description="An https URL, for which the rules of webhooks' URLs hold.",
            examples=["https://login.example/oauth2/token"],
        ),
    ]
    client_id: Annotated[str, Field(examples=["shop"])]
    client_secret: Annotated[
        str | None,
        Field(
            description=f"Stored encrypted, and shown as `{HIDDEN_VALUE}`. If it is omitted, or sent so, it is unchanged; required "
            "with another `token_url` or `client_id`."
        ),
    ] = None
    scope: Annotated[str, Field(description="Names of scopes, with one space between.")] = ""
    parameters: Annotated[
        dict[str, str],
        Field(
            description="More parameters of the token request, such as `audience`. They are shown, so they must not be secret."
        ),
    ] = {}
    client_auth: Annotated[
        ClientAuth,
        Field(
            strict=False,
            description="Place of the client's id and secret in the token request. `basic`: its Authorization header. `body`: its form.",
        ),
    ] = ClientAuth.BASIC

    @classmethod
    def from_domain(cls, value: OAuthClient, **others: Any) -> Self:
        is_replaced = value.client_secret == OTHER_HIDDEN_VALUE
        marker = OTHER_HIDDEN_VALUE if is_replaced else HIDDEN_VALUE
        return cls.mapped(value, client_secret=marker, **others)

    def to_domain(self) -> OAuthClient:
        is_same = self.client_secret == HIDDEN_VALUE
        return domain_value(
            OAuthClient, self, client_secret=None if is_same else self.client_secret
        )


class CredentialsConfig(MappedConfig):
    """Credentials of deliveries. For an API key, or a user and password, a header is enough."""

    domain = WebhookCredentials

    oauth: OauthClientConfig


def hidden_values(
    headers: dict[str, str] | None, credentials: CredentialsConfig | None
) -> Mapping[str, Any]:
    """Return headers and credentials as they are shown, to compare them with stored ones."""
    hidden: dict[str, Any] = {}
    if headers is not None:
        hidden["headers"] = dict.fromkeys(headers, HIDDEN_VALUE)
    if credentials is not None:
        oauth = credentials.oauth.model_copy(update={"client_secret": HIDDEN_VALUE})
        hidden["credentials"] = credentials.model_copy(update={"oauth": oauth})
    return hidden
