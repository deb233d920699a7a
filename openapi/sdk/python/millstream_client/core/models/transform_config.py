from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.header_transform_config import HeaderTransformConfig
    from ..models.transform_config_paths import TransformConfigPaths


T = TypeVar("T", bound="TransformConfig")


@_attrs_define
class TransformConfig:
    """Another body, headers or subject for a route's copies.

    Attributes:
        select (None | str | Unset): JSON Pointer to the part of the body that copies have.
        paths (TransformConfigPaths | Unset): Names of values of the message, each with a JSON Pointer such as
            `/body/order/id`, `/headers/tenant`, `/subject` or `/key`; at most 100. Always there: `<message>`, the body;
            `<subject>`, `<key>`, `<id>`, `<published_at>`, `<topic>`, `<route>`.
        template (Any | Unset): The new body: a JSON value or a text. `<name>` is the value itself where it is a whole
            string of a JSON value, and else its text; `\\\\<` is the character. null: the body as it is.
        headers (HeaderTransformConfig | Unset): Headers to remove, and then headers to set.
        subject (None | str | Unset): Text in which `<name>` stands for the text of what it names.
        strict (bool | Unset): Do not deliver a message without a value that a path names. Otherwise it is null in JSON
            and empty in text. Default: False.
    """

    select: None | str | Unset = UNSET
    paths: TransformConfigPaths | Unset = UNSET
    template: Any | Unset = UNSET
    headers: HeaderTransformConfig | Unset = UNSET
    subject: None | str | Unset = UNSET
    strict: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        select: None | str | Unset
        if isinstance(self.select, Unset):
            select = UNSET
        else:
            select = self.select

        paths: dict[str, Any] | Unset = UNSET
        if not isinstance(self.paths, Unset):
            paths = self.paths.to_dict()

        template = self.template

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        subject: None | str | Unset
        if isinstance(self.subject, Unset):
            subject = UNSET
        else:
            subject = self.subject

        strict = self.strict

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if select is not UNSET:
            field_dict["select"] = select
        if paths is not UNSET:
            field_dict["paths"] = paths
        if template is not UNSET:
            field_dict["template"] = template
        if headers is not UNSET:
            field_dict["headers"] = headers
        if subject is not UNSET:
            field_dict["subject"] = subject
        if strict is not UNSET:
            field_dict["strict"] = strict

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.header_transform_config import HeaderTransformConfig  # noqa: PLC0415
        from ..models.transform_config_paths import TransformConfigPaths  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_select(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        select = _parse_select(d.pop("select", UNSET))

        _paths = d.pop("paths", UNSET)
        paths: TransformConfigPaths | Unset
        if isinstance(_paths, Unset):
            paths = UNSET
        else:
            paths = TransformConfigPaths.from_dict(_paths)

        template = d.pop("template", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: HeaderTransformConfig | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = HeaderTransformConfig.from_dict(_headers)

        def _parse_subject(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        subject = _parse_subject(d.pop("subject", UNSET))

        strict = d.pop("strict", UNSET)

        transform_config = cls(
            select=select,
            paths=paths,
            template=template,
            headers=headers,
            subject=subject,
            strict=strict,
        )

        return transform_config
