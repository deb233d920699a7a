from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.query_as_of_positions import QueryAsOfPositions


T = TypeVar("T", bound="QueryAsOf")


@_attrs_define
class QueryAsOf:
    """Records of a relation that the rows of a query include.

    Attributes:
        positions (QueryAsOfPositions): Next offset by shard: all before it are included, from the start on.
        revision (int | None): Revision of a view; null for a stream.
        batch (int | None): Batch of a view; null for a stream.
    """

    positions: QueryAsOfPositions
    revision: int | None
    batch: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        positions = self.positions.to_dict()

        revision: int | None
        revision = self.revision

        batch: int | None
        batch = self.batch

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "positions": positions,
                "revision": revision,
                "batch": batch,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.query_as_of_positions import QueryAsOfPositions  # noqa: PLC0415

        d = dict(src_dict)
        positions = QueryAsOfPositions.from_dict(d.pop("positions"))

        def _parse_revision(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        revision = _parse_revision(d.pop("revision"))

        def _parse_batch(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        batch = _parse_batch(d.pop("batch"))

        query_as_of = cls(
            positions=positions,
            revision=revision,
            batch=batch,
        )

        query_as_of.additional_properties = d
        return query_as_of

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
