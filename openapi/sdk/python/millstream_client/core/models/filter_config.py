from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.condition_config import ConditionConfig
    from ..models.filter_config_headers import FilterConfigHeaders
    from ..models.sample_config import SampleConfig


T = TypeVar("T", bound="FilterConfig")


@_attrs_define
class FilterConfig:
    """Records to replay: those that match all conditions.

    Attributes:
        keys (list[str] | None | Unset): Records with one of these keys. Default: all keys.
        headers (FilterConfigHeaders | Unset):
        body (list[ConditionConfig] | Unset):
        sample (None | SampleConfig | Unset):
        match (Any | Unset): A match, or a list of matches of which any selects a record, as a route of a topic has it.
    """

    keys: list[str] | None | Unset = UNSET
    headers: FilterConfigHeaders | Unset = UNSET
    body: list[ConditionConfig] | Unset = UNSET
    sample: None | SampleConfig | Unset = UNSET
    match: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.sample_config import SampleConfig  # noqa: PLC0415

        keys: list[str] | None | Unset
        if isinstance(self.keys, Unset):
            keys = UNSET
        elif isinstance(self.keys, list):
            keys = self.keys

        else:
            keys = self.keys

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        body: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.body, Unset):
            body = []
            for body_item_data in self.body:
                body_item = body_item_data.to_dict()
                body.append(body_item)

        sample: dict[str, Any] | None | Unset
        if isinstance(self.sample, Unset):
            sample = UNSET
        elif isinstance(self.sample, SampleConfig):
            sample = self.sample.to_dict()
        else:
            sample = self.sample

        match = self.match

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if keys is not UNSET:
            field_dict["keys"] = keys
        if headers is not UNSET:
            field_dict["headers"] = headers
        if body is not UNSET:
            field_dict["body"] = body
        if sample is not UNSET:
            field_dict["sample"] = sample
        if match is not UNSET:
            field_dict["match"] = match

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.condition_config import ConditionConfig  # noqa: PLC0415
        from ..models.filter_config_headers import FilterConfigHeaders  # noqa: PLC0415
        from ..models.sample_config import SampleConfig  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_keys(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                keys_type_0 = cast(list[str], data)

                return keys_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        keys = _parse_keys(d.pop("keys", UNSET))

        _headers = d.pop("headers", UNSET)
        headers: FilterConfigHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = FilterConfigHeaders.from_dict(_headers)

        _body = d.pop("body", UNSET)
        body: list[ConditionConfig] | Unset = UNSET
        if _body is not UNSET:
            body = []
            for body_item_data in _body:
                body_item = ConditionConfig.from_dict(body_item_data)

                body.append(body_item)

        def _parse_sample(data: object) -> None | SampleConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                sample_type_0 = SampleConfig.from_dict(data)

                return sample_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SampleConfig | Unset, data)

        sample = _parse_sample(d.pop("sample", UNSET))

        match = d.pop("match", UNSET)

        filter_config = cls(
            keys=keys,
            headers=headers,
            body=body,
            sample=sample,
            match=match,
        )

        return filter_config
