from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="MirrorFrom")


@_attrs_define
class MirrorFrom:
    """The deployment to copy from.

    Attributes:
        url (str): Address of the other deployment, such as https://eu.example.com.
        key (None | str | Unset): API key of the other deployment, with `stream:list` and `stream:read`, with
            `group:list` for `groups`, and with `queue:list` and `queue:peek` for `queues`. It is stored encrypted and never
            returned; if omitted, it is unchanged.
    """

    url: str
    key: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        key: None | str | Unset
        if isinstance(self.key, Unset):
            key = UNSET
        else:
            key = self.key

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
            }
        )
        if key is not UNSET:
            field_dict["key"] = key

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url")

        def _parse_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        key = _parse_key(d.pop("key", UNSET))

        mirror_from = cls(
            url=url,
            key=key,
        )

        return mirror_from
