from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SubscriptionOut")


@_attrs_define
class SubscriptionOut:
    """A subscription of a client.

    Attributes:
        name (str): Name chosen by the client: `sub` in its frames.
        source (str): `queue:orders`, or `stream:clicks`.
        mode (str): `work`, `read` or `group`.
        group (None | str):
        credit_messages (int): Remaining credit.
        credit_bytes (int):
    """

    name: str
    source: str
    mode: str
    group: None | str
    credit_messages: int
    credit_bytes: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        source = self.source

        mode = self.mode

        group: None | str
        group = self.group

        credit_messages = self.credit_messages

        credit_bytes = self.credit_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "source": source,
                "mode": mode,
                "group": group,
                "credit_messages": credit_messages,
                "credit_bytes": credit_bytes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        source = d.pop("source")

        mode = d.pop("mode")

        def _parse_group(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        group = _parse_group(d.pop("group"))

        credit_messages = d.pop("credit_messages")

        credit_bytes = d.pop("credit_bytes")

        subscription_out = cls(
            name=name,
            source=source,
            mode=mode,
            group=group,
            credit_messages=credit_messages,
            credit_bytes=credit_bytes,
        )

        subscription_out.additional_properties = d
        return subscription_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
