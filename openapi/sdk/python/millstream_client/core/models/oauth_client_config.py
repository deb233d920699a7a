from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.client_auth import ClientAuth
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.oauth_client_config_parameters import OauthClientConfigParameters


T = TypeVar("T", bound="OauthClientConfig")


@_attrs_define
class OauthClientConfig:
    """OAuth 2.0 client credentials (RFC 6749, section 4.4).

    Each delivery has the header `Authorization: Bearer` with an access token, which is fetched from `token_url` with a
    POST and
    used until shortly before its end.

        Attributes:
            token_url (str): An https URL, for which the rules of webhooks' URLs hold.
            client_id (str):
            client_secret (None | str | Unset): Stored encrypted, and shown as `(secret)`. If it is omitted, or sent so, it
                is unchanged; required with another `token_url` or `client_id`.
            scope (str | Unset): Names of scopes, with one space between. Default: ''.
            parameters (OauthClientConfigParameters | Unset): More parameters of the token request, such as `audience`. They
                are shown, so they must not be secret.
            client_auth (ClientAuth | Unset): Place of a client's id and secret in a token request (RFC 6749, section
                2.3.1).
    """

    token_url: str
    client_id: str
    client_secret: None | str | Unset = UNSET
    scope: str | Unset = ""
    parameters: OauthClientConfigParameters | Unset = UNSET
    client_auth: ClientAuth | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        token_url = self.token_url

        client_id = self.client_id

        client_secret: None | str | Unset
        if isinstance(self.client_secret, Unset):
            client_secret = UNSET
        else:
            client_secret = self.client_secret

        scope = self.scope

        parameters: dict[str, Any] | Unset = UNSET
        if not isinstance(self.parameters, Unset):
            parameters = self.parameters.to_dict()

        client_auth: str | Unset = UNSET
        if not isinstance(self.client_auth, Unset):
            client_auth = self.client_auth.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "token_url": token_url,
                "client_id": client_id,
            }
        )
        if client_secret is not UNSET:
            field_dict["client_secret"] = client_secret
        if scope is not UNSET:
            field_dict["scope"] = scope
        if parameters is not UNSET:
            field_dict["parameters"] = parameters
        if client_auth is not UNSET:
            field_dict["client_auth"] = client_auth

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.oauth_client_config_parameters import OauthClientConfigParameters  # noqa: PLC0415

        d = dict(src_dict)
        token_url = d.pop("token_url")

        client_id = d.pop("client_id")

        def _parse_client_secret(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        client_secret = _parse_client_secret(d.pop("client_secret", UNSET))

        scope = d.pop("scope", UNSET)

        _parameters = d.pop("parameters", UNSET)
        parameters: OauthClientConfigParameters | Unset
        if isinstance(_parameters, Unset):
            parameters = UNSET
        else:
            parameters = OauthClientConfigParameters.from_dict(_parameters)

        _client_auth = d.pop("client_auth", UNSET)
        client_auth: ClientAuth | Unset
        if isinstance(_client_auth, Unset):
            client_auth = UNSET
        else:
            client_auth = ClientAuth(_client_auth)

        oauth_client_config = cls(
            token_url=token_url,
            client_id=client_id,
            client_secret=client_secret,
            scope=scope,
            parameters=parameters,
            client_auth=client_auth,
        )

        return oauth_client_config
