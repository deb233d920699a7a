from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.lease_store import LeaseStore
from ..models.process_role import ProcessRole

if TYPE_CHECKING:
    from ..models.failing_object_out import FailingObjectOut


T = TypeVar("T", bound="ProcessOut")


@_attrs_define
class ProcessOut:
    """A process, as of its last heartbeat (every three seconds).

    Attributes:
        id (str): Id of this run of the process: it changes with a restart.
        role (ProcessRole): Role of a process.
        host (str):
        pid (int):
        version (str):
        started_at (datetime.datetime):
        seen_at (datetime.datetime): Last heartbeat. A process without a heartbeat for ten seconds is removed.
        event_loop_lag_seconds (float): Last measured event-loop lag.
        sockets (int): Open WebSocket connections.
        sessions (int): WebSocket sessions, including briefly disconnected ones.
        failing (list[FailingObjectOut]): Objects that it cannot serve, at most 20, longest failing first.
        leads (list[LeaseStore]): Stores whose maintenance tasks it leads: those of `hot_store` continue while Postgres
            is unreachable.
    """

    id: str
    role: ProcessRole
    host: str
    pid: int
    version: str
    started_at: datetime.datetime
    seen_at: datetime.datetime
    event_loop_lag_seconds: float
    sockets: int
    sessions: int
    failing: list[FailingObjectOut]
    leads: list[LeaseStore]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        role = self.role.value

        host = self.host

        pid = self.pid

        version = self.version

        started_at = self.started_at.isoformat()

        seen_at = self.seen_at.isoformat()

        event_loop_lag_seconds = self.event_loop_lag_seconds

        sockets = self.sockets

        sessions = self.sessions

        failing = []
        for failing_item_data in self.failing:
            failing_item = failing_item_data.to_dict()
            failing.append(failing_item)

        leads = []
        for leads_item_data in self.leads:
            leads_item = leads_item_data.value
            leads.append(leads_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "role": role,
                "host": host,
                "pid": pid,
                "version": version,
                "started_at": started_at,
                "seen_at": seen_at,
                "event_loop_lag_seconds": event_loop_lag_seconds,
                "sockets": sockets,
                "sessions": sessions,
                "failing": failing,
                "leads": leads,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.failing_object_out import FailingObjectOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        role = ProcessRole(d.pop("role"))

        host = d.pop("host")

        pid = d.pop("pid")

        version = d.pop("version")

        started_at = datetime.datetime.fromisoformat(d.pop("started_at"))

        seen_at = datetime.datetime.fromisoformat(d.pop("seen_at"))

        event_loop_lag_seconds = d.pop("event_loop_lag_seconds")

        sockets = d.pop("sockets")

        sessions = d.pop("sessions")

        failing = []
        _failing = d.pop("failing")
        for failing_item_data in _failing:
            failing_item = FailingObjectOut.from_dict(failing_item_data)

            failing.append(failing_item)

        leads = []
        _leads = d.pop("leads")
        for leads_item_data in _leads:
            leads_item = LeaseStore(leads_item_data)

            leads.append(leads_item)

        process_out = cls(
            id=id,
            role=role,
            host=host,
            pid=pid,
            version=version,
            started_at=started_at,
            seen_at=seen_at,
            event_loop_lag_seconds=event_loop_lag_seconds,
            sockets=sockets,
            sessions=sessions,
            failing=failing,
            leads=leads,
        )

        process_out.additional_properties = d
        return process_out

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
