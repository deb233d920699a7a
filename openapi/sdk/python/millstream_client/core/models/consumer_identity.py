from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.consumer_protocol import ConsumerProtocol

T = TypeVar("T", bound="ConsumerIdentity")


@_attrs_define
class ConsumerIdentity:
    """A principal that receives from one address with one client.

    Attributes:
        id (str): Digest of the fields that identify the consumer.
        principal (str): Name of its principal; for a webhook, the name of the webhook.
        protocol (ConsumerProtocol): Protocol by which a consumer receives.
        address (str): Address of its connection: behind a proxy, the proxy's.
        client (str): Client program: the start of its `User-Agent`.
    """

    id: str
    principal: str
    protocol: ConsumerProtocol
    address: str
    client: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        principal = self.principal

        protocol = self.protocol.value

        address = self.address

        client = self.client

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "principal": principal,
                "protocol": protocol,
                "address": address,
                "client": client,
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

        consumer_identity = cls(
            id=id,
            principal=principal,
            protocol=protocol,
            address=address,
            client=client,
        )

        consumer_identity.additional_properties = d
        return consumer_identity

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
