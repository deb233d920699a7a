from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.mirror_group_out import MirrorGroupOut
    from ..models.mirror_queue_out import MirrorQueueOut
    from ..models.mirror_shard_out import MirrorShardOut


T = TypeVar("T", bound="MirrorStats")


@_attrs_define
class MirrorStats:
    """Progress of a mirror. What is lost with the other deployment is what lags behind.

    Attributes:
        lag_records (int): Number of records and messages that are not here yet, when the origin last answered.
        lag_seconds (float): Maximum age of a record or message that is not here yet. It grows while the origin does not
            answer.
        failures (list[str]): Why last attempts failed, each reason once.
        shards (list[MirrorShardOut]):
        queues (list[MirrorQueueOut]):
        groups (list[MirrorGroupOut]):
    """

    lag_records: int
    lag_seconds: float
    failures: list[str]
    shards: list[MirrorShardOut]
    queues: list[MirrorQueueOut]
    groups: list[MirrorGroupOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        lag_records = self.lag_records

        lag_seconds = self.lag_seconds

        failures = self.failures

        shards = []
        for shards_item_data in self.shards:
            shards_item = shards_item_data.to_dict()
            shards.append(shards_item)

        queues = []
        for queues_item_data in self.queues:
            queues_item = queues_item_data.to_dict()
            queues.append(queues_item)

        groups = []
        for groups_item_data in self.groups:
            groups_item = groups_item_data.to_dict()
            groups.append(groups_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "lag_records": lag_records,
                "lag_seconds": lag_seconds,
                "failures": failures,
                "shards": shards,
                "queues": queues,
                "groups": groups,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.mirror_group_out import MirrorGroupOut  # noqa: PLC0415
        from ..models.mirror_queue_out import MirrorQueueOut  # noqa: PLC0415
        from ..models.mirror_shard_out import MirrorShardOut  # noqa: PLC0415

        d = dict(src_dict)
        lag_records = d.pop("lag_records")

        lag_seconds = d.pop("lag_seconds")

        failures = cast(list[str], d.pop("failures"))

        shards = []
        _shards = d.pop("shards")
        for shards_item_data in _shards:
            shards_item = MirrorShardOut.from_dict(shards_item_data)

            shards.append(shards_item)

        queues = []
        _queues = d.pop("queues")
        for queues_item_data in _queues:
            queues_item = MirrorQueueOut.from_dict(queues_item_data)

            queues.append(queues_item)

        groups = []
        _groups = d.pop("groups")
        for groups_item_data in _groups:
            groups_item = MirrorGroupOut.from_dict(groups_item_data)

            groups.append(groups_item)

        mirror_stats = cls(
            lag_records=lag_records,
            lag_seconds=lag_seconds,
            failures=failures,
            shards=shards,
            queues=queues,
            groups=groups,
        )

        mirror_stats.additional_properties = d
        return mirror_stats

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
