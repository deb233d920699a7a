from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.emit import Emit

T = TypeVar("T", bound="ViewSinkOut")


@_attrs_define
class ViewSinkOut:
    """A stream or a queue that gets the changes of a view's rows.

    Attributes:
        stream (None | str):
        queue (None | str):
        emit (Emit): Changes that a sink gets.

            changes: each change of a row by a batch. final: each row of a window once, when the watermark has passed the
            window's end, and
            later corrections of it.
        when (str):
        once_per_key (bool):
    """

    stream: None | str
    queue: None | str
    emit: Emit
    when: str
    once_per_key: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stream: None | str
        stream = self.stream

        queue: None | str
        queue = self.queue

        emit = self.emit.value

        when = self.when

        once_per_key = self.once_per_key

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stream": stream,
                "queue": queue,
                "emit": emit,
                "when": when,
                "once_per_key": once_per_key,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_stream(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        stream = _parse_stream(d.pop("stream"))

        def _parse_queue(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        queue = _parse_queue(d.pop("queue"))

        emit = Emit(d.pop("emit"))

        when = d.pop("when")

        once_per_key = d.pop("once_per_key")

        view_sink_out = cls(
            stream=stream,
            queue=queue,
            emit=emit,
            when=when,
            once_per_key=once_per_key,
        )

        view_sink_out.additional_properties = d
        return view_sink_out

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
