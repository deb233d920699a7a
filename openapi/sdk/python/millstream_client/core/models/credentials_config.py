from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.oauth_client_config import OauthClientConfig


T = TypeVar("T", bound="CredentialsConfig")


@_attrs_define
class CredentialsConfig:
    """Credentials of deliveries. For an API key, or a user and password, a header is enough.

    Attributes:
        oauth (OauthClientConfig): OAuth 2.0 client credentials (RFC 6749, section 4.4).

            Each delivery has the header `Authorization: Bearer` with an access token, which is fetched from `token_url`
            with a POST and
            used until shortly before its end.
    """

    oauth: OauthClientConfig

    def to_dict(self) -> dict[str, Any]:
        oauth = self.oauth.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "oauth": oauth,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.oauth_client_config import OauthClientConfig  # noqa: PLC0415

        d = dict(src_dict)
        oauth = OauthClientConfig.from_dict(d.pop("oauth"))

        credentials_config = cls(
            oauth=oauth,
        )

        return credentials_config
