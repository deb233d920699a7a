from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="LastReceiver")


@_attrs_define
class LastReceiver:
    """The consumer that received a message last. A day later only its id is known.

    Attributes:
        consumer (str): Id of the consumer, as in the list of consumers.
        principal (str | Unset):  Default: ''.
        protocol (str | Unset): `rest`, `sqs`, `ws` or `webhook`. Default: ''.
        address (str | Unset):  Default: ''.
        client (str | Unset):  Default: ''.
    """

    consumer: str
    principal: str | Unset = ""
    protocol: str | Unset = ""
    address: str | Unset = ""
    client: str | Unset = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        consumer = self.consumer

        principal = self.principal

        protocol = self.protocol

        address = self.address

        client = self.client

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "consumer": consumer,
            }
        )
        if principal is not UNSET:
            field_dict["principal"] = principal
        if protocol is not UNSET:
            field_dict["protocol"] = protocol
        if address is not UNSET:
            field_dict["address"] = address
        if client is not UNSET:
            field_dict["client"] = client

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        consumer = d.pop("consumer")

        principal = d.pop("principal", UNSET)

        protocol = d.pop("protocol", UNSET)

        address = d.pop("address", UNSET)

        client = d.pop("client", UNSET)

        last_receiver = cls(
            consumer=consumer,
            principal=principal,
            protocol=protocol,
            address=address,
            client=client,
        )

        last_receiver.additional_properties = d
        return last_receiver

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
