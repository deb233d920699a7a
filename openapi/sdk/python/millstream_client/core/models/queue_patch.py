from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.dedup_scope import DedupScope
from ..models.overflow import Overflow
from ..models.poison_policy import PoisonPolicy
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.backoff_config import BackoffConfig
    from ..models.dead_letters_config import DeadLettersConfig
    from ..models.group_weight_config import GroupWeightConfig
    from ..models.queue_patch_tags import QueuePatchTags
    from ..models.redrive_allow_config import RedriveAllowConfig


T = TypeVar("T", bound="QueuePatch")


@_attrs_define
class QueuePatch:
    """Changes to a queue (a JSON Merge Patch); null resets a field to its default.

    Only `attempts_max: null` means no limit, as it does elsewhere, and `partitions: null` as many as the queue has.

        Attributes:
            partitions (int | None | Unset):
            visibility_timeout_seconds (float | None | Unset):
            delay_seconds (float | None | Unset):
            ttl_seconds (float | None | Unset):
            retention_seconds (float | None | Unset):
            dead_letter_retention_seconds (float | None | Unset):
            message_bytes_max (int | None | Unset):
            attempts_max (int | None | Unset):
            receive_wait_seconds (float | None | Unset):
            in_flight_max (int | None | Unset):
            deduplicate_by_content (bool | None | Unset):
            dedup_scope (DedupScope | None | Unset):
            dead_letters (DeadLettersConfig | None | Unset):
            redrive_allow (None | RedriveAllowConfig | Unset):
            backoff (BackoffConfig | None | Unset):
            paused (bool | None | Unset): Replaced by `PUT` and `DELETE …/pause`.
            messages_max (int | None | Unset):
            bytes_max (int | None | Unset):
            overflow (None | Overflow | Unset):
            on_poison (None | PoisonPolicy | Unset):
            group_weights (list[GroupWeightConfig] | None | Unset):
            stream_view (bool | None | Unset):
            archive (bool | None | Unset):
            history (bool | None | Unset):
            expires_after_idle_seconds (float | None | Unset):
            tags (None | QueuePatchTags | Unset):
    """

    partitions: int | None | Unset = UNSET
    visibility_timeout_seconds: float | None | Unset = UNSET
    delay_seconds: float | None | Unset = UNSET
    ttl_seconds: float | None | Unset = UNSET
    retention_seconds: float | None | Unset = UNSET
    dead_letter_retention_seconds: float | None | Unset = UNSET
    message_bytes_max: int | None | Unset = UNSET
    attempts_max: int | None | Unset = UNSET
    receive_wait_seconds: float | None | Unset = UNSET
    in_flight_max: int | None | Unset = UNSET
    deduplicate_by_content: bool | None | Unset = UNSET
    dedup_scope: DedupScope | None | Unset = UNSET
    dead_letters: DeadLettersConfig | None | Unset = UNSET
    redrive_allow: None | RedriveAllowConfig | Unset = UNSET
    backoff: BackoffConfig | None | Unset = UNSET
    paused: bool | None | Unset = UNSET
    messages_max: int | None | Unset = UNSET
    bytes_max: int | None | Unset = UNSET
    overflow: None | Overflow | Unset = UNSET
    on_poison: None | PoisonPolicy | Unset = UNSET
    group_weights: list[GroupWeightConfig] | None | Unset = UNSET
    stream_view: bool | None | Unset = UNSET
    archive: bool | None | Unset = UNSET
    history: bool | None | Unset = UNSET
    expires_after_idle_seconds: float | None | Unset = UNSET
    tags: None | QueuePatchTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.backoff_config import BackoffConfig  # noqa: PLC0415
        from ..models.dead_letters_config import DeadLettersConfig  # noqa: PLC0415
        from ..models.queue_patch_tags import QueuePatchTags  # noqa: PLC0415
        from ..models.redrive_allow_config import RedriveAllowConfig  # noqa: PLC0415

        partitions: int | None | Unset
        if isinstance(self.partitions, Unset):
            partitions = UNSET
        else:
            partitions = self.partitions

        visibility_timeout_seconds: float | None | Unset
        if isinstance(self.visibility_timeout_seconds, Unset):
            visibility_timeout_seconds = UNSET
        else:
            visibility_timeout_seconds = self.visibility_timeout_seconds

        delay_seconds: float | None | Unset
        if isinstance(self.delay_seconds, Unset):
            delay_seconds = UNSET
        else:
            delay_seconds = self.delay_seconds

        ttl_seconds: float | None | Unset
        if isinstance(self.ttl_seconds, Unset):
            ttl_seconds = UNSET
        else:
            ttl_seconds = self.ttl_seconds

        retention_seconds: float | None | Unset
        if isinstance(self.retention_seconds, Unset):
            retention_seconds = UNSET
        else:
            retention_seconds = self.retention_seconds

        dead_letter_retention_seconds: float | None | Unset
        if isinstance(self.dead_letter_retention_seconds, Unset):
            dead_letter_retention_seconds = UNSET
        else:
            dead_letter_retention_seconds = self.dead_letter_retention_seconds

        message_bytes_max: int | None | Unset
        if isinstance(self.message_bytes_max, Unset):
            message_bytes_max = UNSET
        else:
            message_bytes_max = self.message_bytes_max

        attempts_max: int | None | Unset
        if isinstance(self.attempts_max, Unset):
            attempts_max = UNSET
        else:
            attempts_max = self.attempts_max

        receive_wait_seconds: float | None | Unset
        if isinstance(self.receive_wait_seconds, Unset):
            receive_wait_seconds = UNSET
        else:
            receive_wait_seconds = self.receive_wait_seconds

        in_flight_max: int | None | Unset
        if isinstance(self.in_flight_max, Unset):
            in_flight_max = UNSET
        else:
            in_flight_max = self.in_flight_max

        deduplicate_by_content: bool | None | Unset
        if isinstance(self.deduplicate_by_content, Unset):
            deduplicate_by_content = UNSET
        else:
            deduplicate_by_content = self.deduplicate_by_content

        dedup_scope: None | str | Unset
        if isinstance(self.dedup_scope, Unset):
            dedup_scope = UNSET
        elif isinstance(self.dedup_scope, DedupScope):
            dedup_scope = self.dedup_scope.value
        else:
            dedup_scope = self.dedup_scope

        dead_letters: dict[str, Any] | None | Unset
        if isinstance(self.dead_letters, Unset):
            dead_letters = UNSET
        elif isinstance(self.dead_letters, DeadLettersConfig):
            dead_letters = self.dead_letters.to_dict()
        else:
            dead_letters = self.dead_letters

        redrive_allow: dict[str, Any] | None | Unset
        if isinstance(self.redrive_allow, Unset):
            redrive_allow = UNSET
        elif isinstance(self.redrive_allow, RedriveAllowConfig):
            redrive_allow = self.redrive_allow.to_dict()
        else:
            redrive_allow = self.redrive_allow

        backoff: dict[str, Any] | None | Unset
        if isinstance(self.backoff, Unset):
            backoff = UNSET
        elif isinstance(self.backoff, BackoffConfig):
            backoff = self.backoff.to_dict()
        else:
            backoff = self.backoff

        paused: bool | None | Unset
        if isinstance(self.paused, Unset):
            paused = UNSET
        else:
            paused = self.paused

        messages_max: int | None | Unset
        if isinstance(self.messages_max, Unset):
            messages_max = UNSET
        else:
            messages_max = self.messages_max

        bytes_max: int | None | Unset
        if isinstance(self.bytes_max, Unset):
            bytes_max = UNSET
        else:
            bytes_max = self.bytes_max

        overflow: None | str | Unset
        if isinstance(self.overflow, Unset):
            overflow = UNSET
        elif isinstance(self.overflow, Overflow):
            overflow = self.overflow.value
        else:
            overflow = self.overflow

        on_poison: None | str | Unset
        if isinstance(self.on_poison, Unset):
            on_poison = UNSET
        elif isinstance(self.on_poison, PoisonPolicy):
            on_poison = self.on_poison.value
        else:
            on_poison = self.on_poison

        group_weights: list[dict[str, Any]] | None | Unset
        if isinstance(self.group_weights, Unset):
            group_weights = UNSET
        elif isinstance(self.group_weights, list):
            group_weights = []
            for group_weights_type_0_item_data in self.group_weights:
                group_weights_type_0_item = group_weights_type_0_item_data.to_dict()
                group_weights.append(group_weights_type_0_item)

        else:
            group_weights = self.group_weights

        stream_view: bool | None | Unset
        if isinstance(self.stream_view, Unset):
            stream_view = UNSET
        else:
            stream_view = self.stream_view

        archive: bool | None | Unset
        if isinstance(self.archive, Unset):
            archive = UNSET
        else:
            archive = self.archive

        history: bool | None | Unset
        if isinstance(self.history, Unset):
            history = UNSET
        else:
            history = self.history

        expires_after_idle_seconds: float | None | Unset
        if isinstance(self.expires_after_idle_seconds, Unset):
            expires_after_idle_seconds = UNSET
        else:
            expires_after_idle_seconds = self.expires_after_idle_seconds

        tags: dict[str, Any] | None | Unset
        if isinstance(self.tags, Unset):
            tags = UNSET
        elif isinstance(self.tags, QueuePatchTags):
            tags = self.tags.to_dict()
        else:
            tags = self.tags

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if partitions is not UNSET:
            field_dict["partitions"] = partitions
        if visibility_timeout_seconds is not UNSET:
            field_dict["visibility_timeout_seconds"] = visibility_timeout_seconds
        if delay_seconds is not UNSET:
            field_dict["delay_seconds"] = delay_seconds
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if retention_seconds is not UNSET:
            field_dict["retention_seconds"] = retention_seconds
        if dead_letter_retention_seconds is not UNSET:
            field_dict["dead_letter_retention_seconds"] = dead_letter_retention_seconds
        if message_bytes_max is not UNSET:
            field_dict["message_bytes_max"] = message_bytes_max
        if attempts_max is not UNSET:
            field_dict["attempts_max"] = attempts_max
        if receive_wait_seconds is not UNSET:
            field_dict["receive_wait_seconds"] = receive_wait_seconds
        if in_flight_max is not UNSET:
            field_dict["in_flight_max"] = in_flight_max
        if deduplicate_by_content is not UNSET:
            field_dict["deduplicate_by_content"] = deduplicate_by_content
        if dedup_scope is not UNSET:
            field_dict["dedup_scope"] = dedup_scope
        if dead_letters is not UNSET:
            field_dict["dead_letters"] = dead_letters
        if redrive_allow is not UNSET:
            field_dict["redrive_allow"] = redrive_allow
        if backoff is not UNSET:
            field_dict["backoff"] = backoff
        if paused is not UNSET:
            field_dict["paused"] = paused
        if messages_max is not UNSET:
            field_dict["messages_max"] = messages_max
        if bytes_max is not UNSET:
            field_dict["bytes_max"] = bytes_max
        if overflow is not UNSET:
            field_dict["overflow"] = overflow
        if on_poison is not UNSET:
            field_dict["on_poison"] = on_poison
        if group_weights is not UNSET:
            field_dict["group_weights"] = group_weights
        if stream_view is not UNSET:
            field_dict["stream_view"] = stream_view
        if archive is not UNSET:
            field_dict["archive"] = archive
        if history is not UNSET:
            field_dict["history"] = history
        if expires_after_idle_seconds is not UNSET:
            field_dict["expires_after_idle_seconds"] = expires_after_idle_seconds
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.backoff_config import BackoffConfig  # noqa: PLC0415
        from ..models.dead_letters_config import DeadLettersConfig  # noqa: PLC0415
        from ..models.group_weight_config import GroupWeightConfig  # noqa: PLC0415
        from ..models.queue_patch_tags import QueuePatchTags  # noqa: PLC0415
        from ..models.redrive_allow_config import RedriveAllowConfig  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_partitions(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        partitions = _parse_partitions(d.pop("partitions", UNSET))

        def _parse_visibility_timeout_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        visibility_timeout_seconds = _parse_visibility_timeout_seconds(
            d.pop("visibility_timeout_seconds", UNSET)
        )

        def _parse_delay_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        delay_seconds = _parse_delay_seconds(d.pop("delay_seconds", UNSET))

        def _parse_ttl_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        def _parse_retention_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        retention_seconds = _parse_retention_seconds(d.pop("retention_seconds", UNSET))

        def _parse_dead_letter_retention_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        dead_letter_retention_seconds = _parse_dead_letter_retention_seconds(
            d.pop("dead_letter_retention_seconds", UNSET)
        )

        def _parse_message_bytes_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        message_bytes_max = _parse_message_bytes_max(d.pop("message_bytes_max", UNSET))

        def _parse_attempts_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        attempts_max = _parse_attempts_max(d.pop("attempts_max", UNSET))

        def _parse_receive_wait_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        receive_wait_seconds = _parse_receive_wait_seconds(d.pop("receive_wait_seconds", UNSET))

        def _parse_in_flight_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        in_flight_max = _parse_in_flight_max(d.pop("in_flight_max", UNSET))

        def _parse_deduplicate_by_content(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        deduplicate_by_content = _parse_deduplicate_by_content(
            d.pop("deduplicate_by_content", UNSET)
        )

        def _parse_dedup_scope(data: object) -> DedupScope | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                dedup_scope_type_0 = DedupScope(data)

                return dedup_scope_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DedupScope | None | Unset, data)

        dedup_scope = _parse_dedup_scope(d.pop("dedup_scope", UNSET))

        def _parse_dead_letters(data: object) -> DeadLettersConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                dead_letters_type_0 = DeadLettersConfig.from_dict(data)

                return dead_letters_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DeadLettersConfig | None | Unset, data)

        dead_letters = _parse_dead_letters(d.pop("dead_letters", UNSET))

        def _parse_redrive_allow(data: object) -> None | RedriveAllowConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                redrive_allow_type_0 = RedriveAllowConfig.from_dict(data)

                return redrive_allow_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RedriveAllowConfig | Unset, data)

        redrive_allow = _parse_redrive_allow(d.pop("redrive_allow", UNSET))

        def _parse_backoff(data: object) -> BackoffConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                backoff_type_0 = BackoffConfig.from_dict(data)

                return backoff_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BackoffConfig | None | Unset, data)

        backoff = _parse_backoff(d.pop("backoff", UNSET))

        def _parse_paused(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        paused = _parse_paused(d.pop("paused", UNSET))

        def _parse_messages_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        messages_max = _parse_messages_max(d.pop("messages_max", UNSET))

        def _parse_bytes_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        bytes_max = _parse_bytes_max(d.pop("bytes_max", UNSET))

        def _parse_overflow(data: object) -> None | Overflow | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                overflow_type_0 = Overflow(data)

                return overflow_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Overflow | Unset, data)

        overflow = _parse_overflow(d.pop("overflow", UNSET))

        def _parse_on_poison(data: object) -> None | PoisonPolicy | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                on_poison_type_0 = PoisonPolicy(data)

                return on_poison_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PoisonPolicy | Unset, data)

        on_poison = _parse_on_poison(d.pop("on_poison", UNSET))

        def _parse_group_weights(data: object) -> list[GroupWeightConfig] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                group_weights_type_0 = []
                _group_weights_type_0 = data
                for group_weights_type_0_item_data in _group_weights_type_0:
                    group_weights_type_0_item = GroupWeightConfig.from_dict(
                        group_weights_type_0_item_data
                    )

                    group_weights_type_0.append(group_weights_type_0_item)

                return group_weights_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[GroupWeightConfig] | None | Unset, data)

        group_weights = _parse_group_weights(d.pop("group_weights", UNSET))

        def _parse_stream_view(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        stream_view = _parse_stream_view(d.pop("stream_view", UNSET))

        def _parse_archive(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        archive = _parse_archive(d.pop("archive", UNSET))

        def _parse_history(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        history = _parse_history(d.pop("history", UNSET))

        def _parse_expires_after_idle_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        expires_after_idle_seconds = _parse_expires_after_idle_seconds(
            d.pop("expires_after_idle_seconds", UNSET)
        )

        def _parse_tags(data: object) -> None | QueuePatchTags | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                tags_type_0 = QueuePatchTags.from_dict(data)

                return tags_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QueuePatchTags | Unset, data)

        tags = _parse_tags(d.pop("tags", UNSET))

        queue_patch = cls(
            partitions=partitions,
            visibility_timeout_seconds=visibility_timeout_seconds,
            delay_seconds=delay_seconds,
            ttl_seconds=ttl_seconds,
            retention_seconds=retention_seconds,
            dead_letter_retention_seconds=dead_letter_retention_seconds,
            message_bytes_max=message_bytes_max,
            attempts_max=attempts_max,
            receive_wait_seconds=receive_wait_seconds,
            in_flight_max=in_flight_max,
            deduplicate_by_content=deduplicate_by_content,
            dedup_scope=dedup_scope,
            dead_letters=dead_letters,
            redrive_allow=redrive_allow,
            backoff=backoff,
            paused=paused,
            messages_max=messages_max,
            bytes_max=bytes_max,
            overflow=overflow,
            on_poison=on_poison,
            group_weights=group_weights,
            stream_view=stream_view,
            archive=archive,
            history=history,
            expires_after_idle_seconds=expires_after_idle_seconds,
            tags=tags,
        )

        return queue_patch
