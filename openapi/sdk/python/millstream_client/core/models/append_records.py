from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.record_in import RecordIn


T = TypeVar("T", bound="AppendRecords")


@_attrs_define
class AppendRecords:
    """Batch of records.

    A single record, NDJSON, MessagePack and raw bodies are also accepted.

        Attributes:
            records (list[RecordIn]):
    """

    records: list[RecordIn]

    def to_dict(self) -> dict[str, Any]:
        records = []
        for records_item_data in self.records:
            records_item = records_item_data.to_dict()
            records.append(records_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "records": records,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.record_in import RecordIn  # noqa: PLC0415

        d = dict(src_dict)
        records = []
        _records = d.pop("records")
        for records_item_data in _records:
            records_item = RecordIn.from_dict(records_item_data)

            records.append(records_item)

        append_records = cls(
            records=records,
        )

        return append_records
