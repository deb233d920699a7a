"""Errors of jobs, the archive, views and queries."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class ArchiveBehind(MillstreamError):
    """The shard has reached its limit of unarchived data; nothing happened."""

    code = ErrorCode.ARCHIVE_BEHIND


class ArchiveDamaged(MillstreamError):
    """An archive file is missing or corrupt."""

    code = ErrorCode.ARCHIVE_DAMAGED


class ArchiveOff(MillstreamError):
    """This deployment has no archive."""

    code = ErrorCode.ARCHIVE_OFF


class JobNotFound(MillstreamError):
    """The job does not exist."""

    code = ErrorCode.JOB_NOT_FOUND


class JobRefused(MillstreamError):
    """The job's state does not allow this."""

    code = ErrorCode.JOB_REFUSED


class ViewNotFound(MillstreamError):
    """The view does not exist."""

    code = ErrorCode.VIEW_NOT_FOUND


class ViewRevisionNotFound(MillstreamError):
    """The view has no former revision."""

    code = ErrorCode.VIEW_REVISION_NOT_FOUND


class ViewPlanPending(MillstreamError):
    """No worker has planned the query yet; nothing happened."""

    code = ErrorCode.VIEW_PLAN_PENDING


class ViewSourcesPending(MillstreamError):
    """No worker has found the records of the row yet; nothing happened."""

    code = ErrorCode.VIEW_SOURCES_PENDING


class ViewSourcesUntracked(MillstreamError):
    """The view does not track the sources of its rows."""

    code = ErrorCode.VIEW_SOURCES_UNTRACKED


class ViewHistoryExpired(MillstreamError):
    """The view has not kept its rows of that time."""

    code = ErrorCode.VIEW_HISTORY_EXPIRED


class ViewBehind(MillstreamError):
    """The view does not include the record yet."""

    code = ErrorCode.VIEW_BEHIND


class QueryFailed(MillstreamError):
    """The query failed."""

    code = ErrorCode.QUERY_FAILED
