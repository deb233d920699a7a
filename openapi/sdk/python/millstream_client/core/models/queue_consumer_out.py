from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.consumer_protocol import ConsumerProtocol

T = TypeVar("T", bound="QueueConsumerOut")


@_attrs_define
class QueueConsumerOut:
    """A consumer of a queue.

    Rates are means over the last five minutes, or since its first receive.

        Attributes:
            id (str): Digest of the fields that identify the consumer.
            principal (str): Name of its principal; for a webhook, the name of the webhook.
            protocol (ConsumerProtocol): Protocol by which a consumer receives.
            address (str): Address of its connection: behind a proxy, the proxy's.
            client (str): Client program: the start of its `User-Agent`.
            receives_per_second (float):
            messages_per_second (float):
            last_received_at (datetime.datetime): Last receive, also of an empty one.
            waiting (int): Receives that wait for a message.
            in_flight (int): Messages received and not yet settled.
    """

    id: str
    principal: str
    protocol: ConsumerProtocol
    address: str
    client: str
    receives_per_second: float
    messages_per_second: float
    last_received_at: datetime.datetime
    waiting: int
    in_flight: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        principal = self.principal

        protocol = self.protocol.value

        address = self.address

        client = self.client

        receives_per_second = self.receives_per_second

        messages_per_second = self.messages_per_second

        last_received_at = self.last_received_at.isoformat()

        waiting = self.waiting

        in_flight = self.in_flight

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "principal": principal,
                "protocol": protocol,
                "address": address,
                "client": client,
                "receives_per_second": receives_per_second,
                "messages_per_second": messages_per_second,
                "last_received_at": last_received_at,
                "waiting": waiting,
                "in_flight": in_flight,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        principal = d.pop("principal")

        protocol = ConsumerProtocol(d.pop("protocol"))

        address = d.pop("address")

        client = d.pop("client")

        receives_per_second = d.pop("receives_per_second")

        messages_per_second = d.pop("messages_per_second")

        last_received_at = datetime.datetime.fromisoformat(d.pop("last_received_at"))

        waiting = d.pop("waiting")

        in_flight = d.pop("in_flight")

        queue_consumer_out = cls(
            id=id,
            principal=principal,
            protocol=protocol,
            address=address,
            client=client,
            receives_per_second=receives_per_second,
            messages_per_second=messages_per_second,
            last_received_at=last_received_at,
            waiting=waiting,
            in_flight=in_flight,
        )

        queue_consumer_out.additional_properties = d
        return queue_consumer_out

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
