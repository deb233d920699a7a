"""Errors of consumer groups."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class GroupNotFound(MillstreamError):
    """The consumer group does not exist."""

    code = ErrorCode.GROUP_NOT_FOUND


class MemberUnknown(MillstreamError):
    """The member does not exist in the group, or was removed; join again."""

    code = ErrorCode.MEMBER_UNKNOWN


class StaleGeneration(MillstreamError):
    """The shard was reassigned or reset since this generation; nothing was committed."""

    code = ErrorCode.STALE_GENERATION


class GroupFull(MillstreamError):
    """The group has reached its limit of members or bookmarks."""

    code = ErrorCode.GROUP_FULL


class BookmarkNotFound(MillstreamError):
    """The bookmark does not exist in this group."""

    code = ErrorCode.BOOKMARK_NOT_FOUND
