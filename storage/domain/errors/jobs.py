"""Errors of jobs and the archive."""

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
