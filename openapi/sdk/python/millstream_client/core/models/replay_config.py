from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.order import Order
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.bound_config import BoundConfig
    from ..models.filter_config import FilterConfig
    from ..models.pacing_config import PacingConfig
    from ..models.target_config import TargetConfig


T = TypeVar("T", bound="ReplayConfig")


@_attrs_define
class ReplayConfig:
    """A replay to start.

    Attributes:
        stream (str):
        target (TargetConfig): Target of the records: exactly one of the two.
        id (None | str | Unset): Client-chosen id, which makes the request idempotent.
        shards (list[int] | None | Unset):
        from_ (BoundConfig | None | Unset):
        to (BoundConfig | None | Unset): Default: the end of the source when the replay starts.
        filter_ (FilterConfig | Unset): Records to replay: those that match all conditions.
        order (Order | Unset): Order that a replay preserves: within a shard, within a key, by arrival time, or none.
        pacing (PacingConfig | Unset): Speed of the whole replay.
        max_records (int | None | Unset):
        allow_same_stream (bool | Unset):  Default: False.
        dry_run (bool | Unset): Return what the replay would do without sending anything. Default: False.
        exact (bool | Unset): In a dry run: count records exactly instead of estimating. Default: False.
    """

    stream: str
    target: TargetConfig
    id: None | str | Unset = UNSET
    shards: list[int] | None | Unset = UNSET
    from_: BoundConfig | None | Unset = UNSET
    to: BoundConfig | None | Unset = UNSET
    filter_: FilterConfig | Unset = UNSET
    order: Order | Unset = UNSET
    pacing: PacingConfig | Unset = UNSET
    max_records: int | None | Unset = UNSET
    allow_same_stream: bool | Unset = False
    dry_run: bool | Unset = False
    exact: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        from ..models.bound_config import BoundConfig  # noqa: PLC0415

        stream = self.stream

        target = self.target.to_dict()

        id: None | str | Unset
        if isinstance(self.id, Unset):
            id = UNSET
        else:
            id = self.id

        shards: list[int] | None | Unset
        if isinstance(self.shards, Unset):
            shards = UNSET
        elif isinstance(self.shards, list):
            shards = self.shards

        else:
            shards = self.shards

        from_: dict[str, Any] | None | Unset
        if isinstance(self.from_, Unset):
            from_ = UNSET
        elif isinstance(self.from_, BoundConfig):
            from_ = self.from_.to_dict()
        else:
            from_ = self.from_

        to: dict[str, Any] | None | Unset
        if isinstance(self.to, Unset):
            to = UNSET
        elif isinstance(self.to, BoundConfig):
            to = self.to.to_dict()
        else:
            to = self.to

        filter_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.filter_, Unset):
            filter_ = self.filter_.to_dict()

        order: str | Unset = UNSET
        if not isinstance(self.order, Unset):
            order = self.order.value

        pacing: dict[str, Any] | Unset = UNSET
        if not isinstance(self.pacing, Unset):
            pacing = self.pacing.to_dict()

        max_records: int | None | Unset
        if isinstance(self.max_records, Unset):
            max_records = UNSET
        else:
            max_records = self.max_records

        allow_same_stream = self.allow_same_stream

        dry_run = self.dry_run

        exact = self.exact

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "stream": stream,
                "target": target,
            }
        )
        if id is not UNSET:
            field_dict["id"] = id
        if shards is not UNSET:
            field_dict["shards"] = shards
        if from_ is not UNSET:
            field_dict["from"] = from_
        if to is not UNSET:
            field_dict["to"] = to
        if filter_ is not UNSET:
            field_dict["filter"] = filter_
        if order is not UNSET:
            field_dict["order"] = order
        if pacing is not UNSET:
            field_dict["pacing"] = pacing
        if max_records is not UNSET:
            field_dict["max_records"] = max_records
        if allow_same_stream is not UNSET:
            field_dict["allow_same_stream"] = allow_same_stream
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run
        if exact is not UNSET:
            field_dict["exact"] = exact

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.bound_config import BoundConfig  # noqa: PLC0415
        from ..models.filter_config import FilterConfig  # noqa: PLC0415
        from ..models.pacing_config import PacingConfig  # noqa: PLC0415
        from ..models.target_config import TargetConfig  # noqa: PLC0415

        d = dict(src_dict)
        stream = d.pop("stream")

        target = TargetConfig.from_dict(d.pop("target"))

        def _parse_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id = _parse_id(d.pop("id", UNSET))

        def _parse_shards(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                shards_type_0 = cast(list[int], data)

                return shards_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        shards = _parse_shards(d.pop("shards", UNSET))

        def _parse_from_(data: object) -> BoundConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                from_type_0 = BoundConfig.from_dict(data)

                return from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BoundConfig | None | Unset, data)

        from_ = _parse_from_(d.pop("from", UNSET))

        def _parse_to(data: object) -> BoundConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                to_type_0 = BoundConfig.from_dict(data)

                return to_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BoundConfig | None | Unset, data)

        to = _parse_to(d.pop("to", UNSET))

        _filter_ = d.pop("filter", UNSET)
        filter_: FilterConfig | Unset
        if isinstance(_filter_, Unset):
            filter_ = UNSET
        else:
            filter_ = FilterConfig.from_dict(_filter_)

        _order = d.pop("order", UNSET)
        order: Order | Unset
        if isinstance(_order, Unset):
            order = UNSET
        else:
            order = Order(_order)

        _pacing = d.pop("pacing", UNSET)
        pacing: PacingConfig | Unset
        if isinstance(_pacing, Unset):
            pacing = UNSET
        else:
            pacing = PacingConfig.from_dict(_pacing)

        def _parse_max_records(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_records = _parse_max_records(d.pop("max_records", UNSET))

        allow_same_stream = d.pop("allow_same_stream", UNSET)

        dry_run = d.pop("dry_run", UNSET)

        exact = d.pop("exact", UNSET)

        replay_config = cls(
            stream=stream,
            target=target,
            id=id,
            shards=shards,
            from_=from_,
            to=to,
            filter_=filter_,
            order=order,
            pacing=pacing,
            max_records=max_records,
            allow_same_stream=allow_same_stream,
            dry_run=dry_run,
            exact=exact,
        )

        return replay_config
