from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.api_protocol import ApiProtocol
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.audit_entry_after import AuditEntryAfter
    from ..models.audit_entry_before import AuditEntryBefore


T = TypeVar("T", bound="AuditEntry")


@_attrs_define
class AuditEntry:
    """One administrative call, or a failed authentication.

    Attributes:
        seq (int): Sequence number of the entry; the log has no gaps.
        called_at (datetime.datetime):
        namespace (str):
        principal (str): Name of the principal.
        credential (str): Id of the caller's credential.
        authenticated (str): Authentication method of the caller.
        address (str): Remote address of the caller's connection.
        operation (str):
        action (str): Permission that the operation requires.
        resource (str): Resource, as in `/v1/…`.
        request_id (str):
        outcome (str): `done`, `refused:<code>`, `failed:<code>`, or `unknown` if the process ended before it recorded
            the outcome.
        before (AuditEntryBefore | None): Fields of the definition that the call changed, with their previous values.
        after (AuditEntryAfter | None): The same fields with their new values; otherwise a summary of the response.
        prev_hash (str): Hash of the previous entry.
        hash_ (str): SHA-256 of this entry without its hash, as JSON with sorted keys and no spaces.
        protocol (ApiProtocol | None | Unset): Protocol of the call. Entries of versions that did not record it under
            this name have only `door`.
        door (ApiProtocol | Unset): API through which a call was made, or `system` for the service itself.
    """

    seq: int
    called_at: datetime.datetime
    namespace: str
    principal: str
    credential: str
    authenticated: str
    address: str
    operation: str
    action: str
    resource: str
    request_id: str
    outcome: str
    before: AuditEntryBefore | None
    after: AuditEntryAfter | None
    prev_hash: str
    hash_: str
    protocol: ApiProtocol | None | Unset = UNSET
    door: ApiProtocol | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.audit_entry_after import AuditEntryAfter  # noqa: PLC0415
        from ..models.audit_entry_before import AuditEntryBefore  # noqa: PLC0415

        seq = self.seq

        called_at = self.called_at.isoformat()

        namespace = self.namespace

        principal = self.principal

        credential = self.credential

        authenticated = self.authenticated

        address = self.address

        operation = self.operation

        action = self.action

        resource = self.resource

        request_id = self.request_id

        outcome = self.outcome

        before: dict[str, Any] | None
        if isinstance(self.before, AuditEntryBefore):
            before = self.before.to_dict()
        else:
            before = self.before

        after: dict[str, Any] | None
        if isinstance(self.after, AuditEntryAfter):
            after = self.after.to_dict()
        else:
            after = self.after

        prev_hash = self.prev_hash

        hash_ = self.hash_

        protocol: None | str | Unset
        if isinstance(self.protocol, Unset):
            protocol = UNSET
        elif isinstance(self.protocol, ApiProtocol):
            protocol = self.protocol.value
        else:
            protocol = self.protocol

        door: str | Unset = UNSET
        if not isinstance(self.door, Unset):
            door = self.door.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "seq": seq,
                "called_at": called_at,
                "namespace": namespace,
                "principal": principal,
                "credential": credential,
                "authenticated": authenticated,
                "address": address,
                "operation": operation,
                "action": action,
                "resource": resource,
                "request_id": request_id,
                "outcome": outcome,
                "before": before,
                "after": after,
                "prev_hash": prev_hash,
                "hash": hash_,
            }
        )
        if protocol is not UNSET:
            field_dict["protocol"] = protocol
        if door is not UNSET:
            field_dict["door"] = door

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.audit_entry_after import AuditEntryAfter  # noqa: PLC0415
        from ..models.audit_entry_before import AuditEntryBefore  # noqa: PLC0415

        d = dict(src_dict)
        seq = d.pop("seq")

        called_at = datetime.datetime.fromisoformat(d.pop("called_at"))

        namespace = d.pop("namespace")

        principal = d.pop("principal")

        credential = d.pop("credential")

        authenticated = d.pop("authenticated")

        address = d.pop("address")

        operation = d.pop("operation")

        action = d.pop("action")

        resource = d.pop("resource")

        request_id = d.pop("request_id")

        outcome = d.pop("outcome")

        def _parse_before(data: object) -> AuditEntryBefore | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                before_type_0 = AuditEntryBefore.from_dict(data)

                return before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AuditEntryBefore | None, data)

        before = _parse_before(d.pop("before"))

        def _parse_after(data: object) -> AuditEntryAfter | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                after_type_0 = AuditEntryAfter.from_dict(data)

                return after_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AuditEntryAfter | None, data)

        after = _parse_after(d.pop("after"))

        prev_hash = d.pop("prev_hash")

        hash_ = d.pop("hash")

        def _parse_protocol(data: object) -> ApiProtocol | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                protocol_type_0 = ApiProtocol(data)

                return protocol_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ApiProtocol | None | Unset, data)

        protocol = _parse_protocol(d.pop("protocol", UNSET))

        _door = d.pop("door", UNSET)
        door: ApiProtocol | Unset
        if isinstance(_door, Unset):
            door = UNSET
        else:
            door = ApiProtocol(_door)

        audit_entry = cls(
            seq=seq,
            called_at=called_at,
            namespace=namespace,
            principal=principal,
            credential=credential,
            authenticated=authenticated,
            address=address,
            operation=operation,
            action=action,
            resource=resource,
            request_id=request_id,
            outcome=outcome,
            before=before,
            after=after,
            prev_hash=prev_hash,
            hash_=hash_,
            protocol=protocol,
            door=door,
        )

        audit_entry.additional_properties = d
        return audit_entry

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
