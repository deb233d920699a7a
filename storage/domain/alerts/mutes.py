"""Mutes of alerts: the value, and what a mute can name."""

import re

import msgspec

from storage.domain import limits
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.definitions import check_seconds
from storage.domain.errors import ValidationFailed


class AlertMute(msgspec.Struct, frozen=True, kw_only=True):
    """Mute of an object's alerts of one kind in a namespace, until a time."""

    namespace: str
    kind: AlertKind
    object: str
    muted_by: str
    muted_at_ms: int
    until_ms: int

    @property
    def subject(self) -> AlertSubject:
        """Subject of the muted alerts."""
        return AlertSubject(self.kind, self.object)


_OBJECT = re.compile(rf"[A-Za-z0-9_.:-]{{1,{limits.ALERT_OBJECT_CHARACTERS_MAX}}}")


def can_mute(subject: AlertSubject) -> bool:
    """Return whether a mute can name the object."""
    return _OBJECT.fullmatch(subject.object) is not None


def check_mute(subject: AlertSubject, duration_ms: int) -> None:
    """Raise ValidationFailed unless the alert can be muted for that long."""
    if not can_mute(subject):
        detail = f"must have 1 to {limits.ALERT_OBJECT_CHARACTERS_MAX} of A-Z a-z 0-9 _ . : -"
        raise ValidationFailed.at("/name", detail, "invalid")
    shortest, longest = limits.ALERT_MUTE_MS_MIN, limits.ALERT_MUTE_MS_MAX
    if faults := check_seconds("/duration_seconds", duration_ms, shortest, longest):
        raise ValidationFailed("The mute is invalid.", *faults)
