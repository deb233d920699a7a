"""Mutes of alerts: stored by namespace, the same for every process."""

from collections.abc import Sequence

from storage.domain import limits
from storage.domain.alerts.kinds import AlertSubject
from storage.domain.alerts.mutes import AlertMute, check_mute
from storage.domain.clock import Clock
from storage.postgres.database import Database
from storage.postgres.repositories.alert_mutes import AlertMuteRows


class AlertMutes:
    """Mutes of a deployment; each ends by itself.

    Every method raises StorageUnavailable or StorageBusy; those that change something, OutcomeUnknown.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._rows = AlertMuteRows(database)
        self._clock = clock

    async def mute(
        self, namespace: str, subject: AlertSubject, duration_ms: int, by: str
    ) -> AlertMute:
        """Mute alerts from now on for a time, in place of an earlier mute.

        Raises ValidationFailed, and QuotaReached beyond ALERT_MUTES_MAX.
        """
        check_mute(subject, duration_ms)
        now_ms = self._clock.now_ms()
        mute = AlertMute(
            namespace=namespace,
            kind=subject.kind,
            object=subject.object,
            muted_by=by,
            muted_at_ms=now_ms,
            until_ms=now_ms + duration_ms,
        )
        await self._rows.put(mute)
        return mute

    async def unmute(self, namespace: str, subject: AlertSubject) -> None:
        """Delete a mute, if it exists."""
        await self._rows.delete(namespace, subject)

    async def list(
        self,
        namespace: str,
        *,
        after: tuple[str, str] = ("", ""),
        limit: int = limits.ALERT_MUTES_MAX,
    ) -> Sequence[AlertMute]:
        """Return the mutes of a namespace by kind and object, strictly after `after`."""
        return await self._rows.page(namespace, self._clock.now_ms(), after, limit)
