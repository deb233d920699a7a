from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.shard_mode import ShardMode
from ..types import UNSET, Unset

T = TypeVar("T", bound="TargetConfig")


@_attrs_define
class TargetConfig:
    """Target of the records: exactly one of the two.

    Attributes:
        stream (None | str | Unset):
        queue (None | str | Unset):
        shard_mode (ShardMode | Unset): Placement of records in a target stream.
    """

    stream: None | str | Unset = UNSET
    queue: None | str | Unset = UNSET
    shard_mode: ShardMode | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        stream: None | str | Unset
        if isinstance(self.stream, Unset):
            stream = UNSET
        else:
            stream = self.stream

        queue: None | str | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        else:
            queue = self.queue

        shard_mode: str | Unset = UNSET
        if not isinstance(self.shard_mode, Unset):
            shard_mode = self.shard_mode.value

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if stream is not UNSET:
            field_dict["stream"] = stream
        if queue is not UNSET:
            field_dict["queue"] = queue
        if shard_mode is not UNSET:
            field_dict["shard_mode"] = shard_mode

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_stream(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stream = _parse_stream(d.pop("stream", UNSET))

        def _parse_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue = _parse_queue(d.pop("queue", UNSET))

        _shard_mode = d.pop("shard_mode", UNSET)
        shard_mode: ShardMode | Unset
        if isinstance(_shard_mode, Unset):
            shard_mode = UNSET
        else:
            shard_mode = ShardMode(_shard_mode)

        target_config = cls(
            stream=stream,
            queue=queue,
            shard_mode=shard_mode,
        )

        return target_config
