from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PublishedMessageOut")


@_attrs_define
class PublishedMessageOut:
    """Id of an accepted message, and the number of routes that take it.

    `duplicate`: it had been accepted before, and nothing was added; `routes` is null then.

        Attributes:
            id (str):
            shard (int):
            offset (int):
            duplicate (bool):
            routes (int | None):
    """

    id: str
    shard: int
    offset: int
    duplicate: bool
    routes: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        shard = self.shard

        offset = self.offset

        duplicate = self.duplicate

        routes: int | None
        routes = self.routes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "shard": shard,
                "offset": offset,
                "duplicate": duplicate,
                "routes": routes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        shard = d.pop("shard")

        offset = d.pop("offset")

        duplicate = d.pop("duplicate")

        def _parse_routes(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        routes = _parse_routes(d.pop("routes"))

        published_message_out = cls(
            id=id,
            shard=shard,
            offset=offset,
            duplicate=duplicate,
            routes=routes,
        )

        published_message_out.additional_properties = d
        return published_message_out

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
