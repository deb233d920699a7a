from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.producer_in import ProducerIn
    from ..models.record_in import RecordIn


T = TypeVar("T", bound="AppendToShard")


@_attrs_define
class AppendToShard:
    """A batch of records for one shard: all of them or none, and only if the conditions hold.

    Attributes:
        records (list[RecordIn]):
        producer (None | ProducerIn | Unset):
        expected_offset (int | None | Unset): Append only if this is the shard's next offset.
        fence (str | Unset): Fencing token of the shard, if it is fenced. Default: ''.
    """

    records: list[RecordIn]
    producer: None | ProducerIn | Unset = UNSET
    expected_offset: int | None | Unset = UNSET
    fence: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        from ..models.producer_in import ProducerIn  # noqa: PLC0415

        records = []
        for records_item_data in self.records:
            records_item = records_item_data.to_dict()
            records.append(records_item)

        producer: dict[str, Any] | None | Unset
        if isinstance(self.producer, Unset):
            producer = UNSET
        elif isinstance(self.producer, ProducerIn):
            producer = self.producer.to_dict()
        else:
            producer = self.producer

        expected_offset: int | None | Unset
        if isinstance(self.expected_offset, Unset):
            expected_offset = UNSET
        else:
            expected_offset = self.expected_offset

        fence = self.fence

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "records": records,
            }
        )
        if producer is not UNSET:
            field_dict["producer"] = producer
        if expected_offset is not UNSET:
            field_dict["expected_offset"] = expected_offset
        if fence is not UNSET:
            field_dict["fence"] = fence

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.producer_in import ProducerIn  # noqa: PLC0415
        from ..models.record_in import RecordIn  # noqa: PLC0415

        d = dict(src_dict)
        records = []
        _records = d.pop("records")
        for records_item_data in _records:
            records_item = RecordIn.from_dict(records_item_data)

            records.append(records_item)

        def _parse_producer(data: object) -> None | ProducerIn | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                producer_type_0 = ProducerIn.from_dict(data)

                return producer_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ProducerIn | Unset, data)

        producer = _parse_producer(d.pop("producer", UNSET))

        def _parse_expected_offset(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        expected_offset = _parse_expected_offset(d.pop("expected_offset", UNSET))

        fence = d.pop("fence", UNSET)

        append_to_shard = cls(
            records=records,
            producer=producer,
            expected_offset=expected_offset,
            fence=fence,
        )

        return append_to_shard
