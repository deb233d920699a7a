from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.unmatched import Unmatched
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.topic_patch_tags import TopicPatchTags


T = TypeVar("T", bound="TopicPatch")


@_attrs_define
class TopicPatch:
    """Changes to a topic (a JSON Merge Patch); null resets a field to its default.

    `retention_seconds` is instead set to none.

        Attributes:
            unmatched (None | Unmatched | Unset):
            deduplicate_by_content (bool | None | Unset):
            message_bytes_max (int | None | Unset):
            retention_seconds (float | None | Unset):
            retention_bytes (int | None | Unset):
            archive (bool | None | Unset):
            tags (None | TopicPatchTags | Unset):
    """

    unmatched: None | Unmatched | Unset = UNSET
    deduplicate_by_content: bool | None | Unset = UNSET
    message_bytes_max: int | None | Unset = UNSET
    retention_seconds: float | None | Unset = UNSET
    retention_bytes: int | None | Unset = UNSET
    archive: bool | None | Unset = UNSET
    tags: None | TopicPatchTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.topic_patch_tags import TopicPatchTags  # noqa: PLC0415

        unmatched: None | str | Unset
        if isinstance(self.unmatched, Unset):
            unmatched = UNSET
        elif isinstance(self.unmatched, Unmatched):
            unmatched = self.unmatched.value
        else:
            unmatched = self.unmatched

        deduplicate_by_content: bool | None | Unset
        if isinstance(self.deduplicate_by_content, Unset):
            deduplicate_by_content = UNSET
        else:
            deduplicate_by_content = self.deduplicate_by_content

        message_bytes_max: int | None | Unset
        if isinstance(self.message_bytes_max, Unset):
            message_bytes_max = UNSET
        else:
            message_bytes_max = self.message_bytes_max

        retention_seconds: float | None | Unset
        if isinstance(self.retention_seconds, Unset):
            retention_seconds = UNSET
        else:
            retention_seconds = self.retention_seconds

        retention_bytes: int | None | Unset
        if isinstance(self.retention_bytes, Unset):
            retention_bytes = UNSET
        else:
            retention_bytes = self.retention_bytes

        archive: bool | None | Unset
        if isinstance(self.archive, Unset):
            archive = UNSET
        else:
            archive = self.archive

        tags: dict[str, Any] | None | Unset
        if isinstance(self.tags, Unset):
            tags = UNSET
        elif isinstance(self.tags, TopicPatchTags):
            tags = self.tags.to_dict()
        else:
            tags = self.tags

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if unmatched is not UNSET:
            field_dict["unmatched"] = unmatched
        if deduplicate_by_content is not UNSET:
            field_dict["deduplicate_by_content"] = deduplicate_by_content
        if message_bytes_max is not UNSET:
            field_dict["message_bytes_max"] = message_bytes_max
        if retention_seconds is not UNSET:
            field_dict["retention_seconds"] = retention_seconds
        if retention_bytes is not UNSET:
            field_dict["retention_bytes"] = retention_bytes
        if archive is not UNSET:
            field_dict["archive"] = archive
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.topic_patch_tags import TopicPatchTags  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_unmatched(data: object) -> None | Unmatched | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                unmatched_type_0 = Unmatched(data)

                return unmatched_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unmatched | Unset, data)

        unmatched = _parse_unmatched(d.pop("unmatched", UNSET))

        def _parse_deduplicate_by_content(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        deduplicate_by_content = _parse_deduplicate_by_content(
            d.pop("deduplicate_by_content", UNSET)
        )

        def _parse_message_bytes_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        message_bytes_max = _parse_message_bytes_max(d.pop("message_bytes_max", UNSET))

        def _parse_retention_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        retention_seconds = _parse_retention_seconds(d.pop("retention_seconds", UNSET))

        def _parse_retention_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        retention_bytes = _parse_retention_bytes(d.pop("retention_bytes", UNSET))

        def _parse_archive(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        archive = _parse_archive(d.pop("archive", UNSET))

        def _parse_tags(data: object) -> None | TopicPatchTags | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                tags_type_0 = TopicPatchTags.from_dict(data)

                return tags_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TopicPatchTags | Unset, data)

        tags = _parse_tags(d.pop("tags", UNSET))

        topic_patch = cls(
            unmatched=unmatched,
            deduplicate_by_content=deduplicate_by_content,
            message_bytes_max=message_bytes_max,
            retention_seconds=retention_seconds,
            retention_bytes=retention_bytes,
            archive=archive,
            tags=tags,
        )

        return topic_patch
