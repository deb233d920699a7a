"""Views: rows of deleted revisions are deleted, and each stream with views has a scan job."""

from consumers.maintenance.task import drain, maintenance_task
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.presence import LeaseStore


@maintenance_task(
    "views",
    LeaseStore.POSTGRES,
    period_ms=5 * limits.SECOND_MS,
    idle_ms=20 * limits.SECOND_MS,
    timeout_ms=limits.MINUTE_MS,
)
async def maintain_views(storage: Storage) -> int:
    """Submit missing scan jobs, and delete rows in pieces; return the number of both."""
    submitted = await storage.view_scan_jobs.ensure_all()
    return submitted + await drain(storage.views.sweep)
