from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.subscription_out import SubscriptionOut


T = TypeVar("T", bound="SocketOut")


@_attrs_define
class SocketOut:
    """A client session and its connection.

    Attributes:
        id (str):
        process (str): Process that holds the connection, as in `/v1/processes`.
        principal (str): Name of its principal.
        address (str): Remote address; empty while disconnected.
        protocol (str):
        connected_at (datetime.datetime | None): Null while disconnected; the session can still be resumed.
        queued_bytes (int): Sent but not yet confirmed: kept for retransmission.
        subscriptions (list[SubscriptionOut]):
    """

    id: str
    process: str
    principal: str
    address: str
    protocol: str
    connected_at: datetime.datetime | None
    queued_bytes: int
    subscriptions: list[SubscriptionOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        process = self.process

        principal = self.principal

        address = self.address

        protocol = self.protocol

        connected_at: None | str
        if isinstance(self.connected_at, datetime.datetime):
            connected_at = self.connected_at.isoformat()
        else:
            connected_at = self.connected_at

        queued_bytes = self.queued_bytes

        subscriptions = []
        for subscriptions_item_data in self.subscriptions:
            subscriptions_item = subscriptions_item_data.to_dict()
            subscriptions.append(subscriptions_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "process": process,
                "principal": principal,
                "address": address,
                "protocol": protocol,
                "connected_at": connected_at,
                "queued_bytes": queued_bytes,
                "subscriptions": subscriptions,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.subscription_out import SubscriptionOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        process = d.pop("process")

        principal = d.pop("principal")

        address = d.pop("address")

        protocol = d.pop("protocol")

        def _parse_connected_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                connected_at_type_0 = datetime.datetime.fromisoformat(data)

                return connected_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        connected_at = _parse_connected_at(d.pop("connected_at"))

        queued_bytes = d.pop("queued_bytes")

        subscriptions = []
        _subscriptions = d.pop("subscriptions")
        for subscriptions_item_data in _subscriptions:
            subscriptions_item = SubscriptionOut.from_dict(subscriptions_item_data)

            subscriptions.append(subscriptions_item)

        socket_out = cls(
            id=id,
            process=process,
            principal=principal,
            address=address,
            protocol=protocol,
            connected_at=connected_at,
            queued_bytes=queued_bytes,
            subscriptions=subscriptions,
        )

        socket_out.additional_properties = d
        return socket_out

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
