from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.emit import Emit
from ..types import UNSET, Unset

T = TypeVar("T", bound="ViewSinkConfig")


@_attrs_define
class ViewSinkConfig:
    """A stream or a queue that gets the changes of a view's rows: exactly one of the two.

    Attributes:
        stream (None | str | Unset):
        queue (None | str | Unset):
        emit (Emit | Unset): Changes that a sink gets.

            changes: each change of a row by a batch. final: each row of a window once, when the watermark has passed the
            window's end, and
            later corrections of it.
        when (str | Unset): A SQL condition on the columns of the rows, as `where` of a match: the sink gets the rows
            for which it holds. Empty: all. Default: ''.
        once_per_key (bool | Unset): A row is sent only when it appears among those for which `when` holds. Default:
            False.
    """

    stream: None | str | Unset = UNSET
    queue: None | str | Unset = UNSET
    emit: Emit | Unset = UNSET
    when: str | Unset = ""
    once_per_key: bool | Unset = False

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

        emit: str | Unset = UNSET
        if not isinstance(self.emit, Unset):
            emit = self.emit.value

        when = self.when

        once_per_key = self.once_per_key

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if stream is not UNSET:
            field_dict["stream"] = stream
        if queue is not UNSET:
            field_dict["queue"] = queue
        if emit is not UNSET:
            field_dict["emit"] = emit
        if when is not UNSET:
            field_dict["when"] = when
        if once_per_key is not UNSET:
            field_dict["once_per_key"] = once_per_key

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

        _emit = d.pop("emit", UNSET)
        emit: Emit | Unset
        if isinstance(_emit, Unset):
            emit = UNSET
        else:
            emit = Emit(_emit)

        when = d.pop("when", UNSET)

        once_per_key = d.pop("once_per_key", UNSET)

        view_sink_config = cls(
            stream=stream,
            queue=queue,
            emit=emit,
            when=when,
            once_per_key=once_per_key,
        )

        return view_sink_config
