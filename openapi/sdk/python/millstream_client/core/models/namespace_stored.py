from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.field_change import FieldChange
    from ..models.rates_config import RatesConfig
    from ..models.resource_rates_config import ResourceRatesConfig


T = TypeVar("T", bound="NamespaceStored")


@_attrs_define
class NamespaceStored:
    """A namespace after a PUT, and what the PUT changed.

    Attributes:
        name (str):
        account_id (str): Its 12-digit account id in URLs and ARNs of the SQS- and Kinesis-compatible APIs.
        stored_bytes (int | None): Last measured size, if it is limited; otherwise null.
        over_storage_quota (bool): Whether writes are rejected because of the size.
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
        rates (None | RatesConfig | Unset): Limits for all calls in the namespace together.
        resources (list[ResourceRatesConfig] | Unset):
        connections_max (int | None | Unset): Concurrent WebSocket connections; null: no limit.
        queues_max (int | None | Unset): null: no limit.
        streams_max (int | None | Unset): null: no limit.
        stored_bytes_max (int | None | Unset): Maximum size of its queues and streams in the hot store. Exceeding it is
            detected within seconds; then writes are rejected until the size is below the limit. null: no limit.
        stores_too_much (bool | Unset): Former name of `over_storage_quota`, which replaces it.
    """

    name: str
    account_id: str
    stored_bytes: int | None
    over_storage_quota: bool
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    created: bool
    dry_run: bool
    changes: list[FieldChange]
    rates: None | RatesConfig | Unset = UNSET
    resources: list[ResourceRatesConfig] | Unset = UNSET
    connections_max: int | None | Unset = UNSET
    queues_max: int | None | Unset = UNSET
    streams_max: int | None | Unset = UNSET
    stored_bytes_max: int | None | Unset = UNSET
    stores_too_much: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.rates_config import RatesConfig  # noqa: PLC0415

        name = self.name

        account_id = self.account_id

        stored_bytes: int | None
        stored_bytes = self.stored_bytes

        over_storage_quota = self.over_storage_quota

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        created = self.created

        dry_run = self.dry_run

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        rates: dict[str, Any] | None | Unset
        if isinstance(self.rates, Unset):
            rates = UNSET
        elif isinstance(self.rates, RatesConfig):
            rates = self.rates.to_dict()
        else:
            rates = self.rates

        resources: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.resources, Unset):
            resources = []
            for resources_item_data in self.resources:
                resources_item = resources_item_data.to_dict()
                resources.append(resources_item)

        connections_max: int | None | Unset
        if isinstance(self.connections_max, Unset):
            connections_max = UNSET
        else:
            connections_max = self.connections_max

        queues_max: int | None | Unset
        if isinstance(self.queues_max, Unset):
            queues_max = UNSET
        else:
            queues_max = self.queues_max

        streams_max: int | None | Unset
        if isinstance(self.streams_max, Unset):
            streams_max = UNSET
        else:
            streams_max = self.streams_max

        stored_bytes_max: int | None | Unset
        if isinstance(self.stored_bytes_max, Unset):
            stored_bytes_max = UNSET
        else:
            stored_bytes_max = self.stored_bytes_max

        stores_too_much = self.stores_too_much

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "account_id": account_id,
                "stored_bytes": stored_bytes,
                "over_storage_quota": over_storage_quota,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
                "created": created,
                "dry_run": dry_run,
                "changes": changes,
            }
        )
        if rates is not UNSET:
            field_dict["rates"] = rates
        if resources is not UNSET:
            field_dict["resources"] = resources
        if connections_max is not UNSET:
            field_dict["connections_max"] = connections_max
        if queues_max is not UNSET:
            field_dict["queues_max"] = queues_max
        if streams_max is not UNSET:
            field_dict["streams_max"] = streams_max
        if stored_bytes_max is not UNSET:
            field_dict["stored_bytes_max"] = stored_bytes_max
        if stores_too_much is not UNSET:
            field_dict["stores_too_much"] = stores_too_much

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_change import FieldChange  # noqa: PLC0415
        from ..models.rates_config import RatesConfig  # noqa: PLC0415
        from ..models.resource_rates_config import ResourceRatesConfig  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        account_id = d.pop("account_id")

        def _parse_stored_bytes(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        stored_bytes = _parse_stored_bytes(d.pop("stored_bytes"))

        over_storage_quota = d.pop("over_storage_quota")

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        created = d.pop("created")

        dry_run = d.pop("dry_run")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = FieldChange.from_dict(changes_item_data)

            changes.append(changes_item)

        def _parse_rates(data: object) -> None | RatesConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                rates_type_0 = RatesConfig.from_dict(data)

                return rates_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RatesConfig | Unset, data)

        rates = _parse_rates(d.pop("rates", UNSET))

        _resources = d.pop("resources", UNSET)
        resources: list[ResourceRatesConfig] | Unset = UNSET
        if _resources is not UNSET:
            resources = []
            for resources_item_data in _resources:
                resources_item = ResourceRatesConfig.from_dict(resources_item_data)

                resources.append(resources_item)

        def _parse_connections_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        connections_max = _parse_connections_max(d.pop("connections_max", UNSET))

        def _parse_queues_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        queues_max = _parse_queues_max(d.pop("queues_max", UNSET))

        def _parse_streams_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        streams_max = _parse_streams_max(d.pop("streams_max", UNSET))

        def _parse_stored_bytes_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        stored_bytes_max = _parse_stored_bytes_max(d.pop("stored_bytes_max", UNSET))

        stores_too_much = d.pop("stores_too_much", UNSET)

        namespace_stored = cls(
            name=name,
            account_id=account_id,
            stored_bytes=stored_bytes,
            over_storage_quota=over_storage_quota,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
            created=created,
            dry_run=dry_run,
            changes=changes,
            rates=rates,
            resources=resources,
            connections_max=connections_max,
            queues_max=queues_max,
            streams_max=streams_max,
            stored_bytes_max=stored_bytes_max,
            stores_too_much=stores_too_much,
        )

        return namespace_stored
