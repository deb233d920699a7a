from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.item_error import ItemError


T = TypeVar("T", bound="PublicationResult")


@_attrs_define
class PublicationResult:
    """Id of a message, and the number of its routes, or why it was refused.

    Attributes:
        id (str | Unset):
        shard (int | Unset):
        offset (int | Unset):
        duplicate (bool | Unset):
        routes (int | None | Unset):
        error (ItemError | Unset): Reason why one item of a batch was refused.
    """

    id: str | Unset = UNSET
    shard: int | Unset = UNSET
    offset: int | Unset = UNSET
    duplicate: bool | Unset = UNSET
    routes: int | None | Unset = UNSET
    error: ItemError | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        shard = self.shard

        offset = self.offset

        duplicate = self.duplicate

        routes: int | None | Unset
        if isinstance(self.routes, Unset):
            routes = UNSET
        else:
            routes = self.routes

        error: dict[str, Any] | Unset = UNSET
        if not isinstance(self.error, Unset):
            error = self.error.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if id is not UNSET:
            field_dict["id"] = id
        if shard is not UNSET:
            field_dict["shard"] = shard
        if offset is not UNSET:
            field_dict["offset"] = offset
        if duplicate is not UNSET:
            field_dict["duplicate"] = duplicate
        if routes is not UNSET:
            field_dict["routes"] = routes
        if error is not UNSET:
            field_dict["error"] = error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.item_error import ItemError  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id", UNSET)

        shard = d.pop("shard", UNSET)

        offset = d.pop("offset", UNSET)

        duplicate = d.pop("duplicate", UNSET)

        def _parse_routes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        routes = _parse_routes(d.pop("routes", UNSET))

        _error = d.pop("error", UNSET)
        error: ItemError | Unset
        if isinstance(_error, Unset):
            error = UNSET
        else:
            error = ItemError.from_dict(_error)

        publication_result = cls(
            id=id,
            shard=shard,
            offset=offset,
            duplicate=duplicate,
            routes=routes,
            error=error,
        )

        publication_result.additional_properties = d
        return publication_result

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
