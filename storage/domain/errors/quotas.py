"""Errors of namespaces and their quotas."""

from collections.abc import Sequence
from typing import Any

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class NamespaceNotFound(MillstreamError):
    """The namespace does not exist."""

    code = ErrorCode.NAMESPACE_NOT_FOUND


class NamespaceInUse(MillstreamError):
    """The namespace is not empty, or is the default namespace."""

    code = ErrorCode.NAMESPACE_IN_USE


class QuotaExceeded(MillstreamError):
    """The call exceeds a quota now; nothing happened.

    Facts: `policy`, `limit`, and `retry_after_seconds`, whole. `statuses`: the caller's quota statuses, for the
    protocols that report them.
    """

    code = ErrorCode.QUOTA_EXCEEDED
    statuses: Sequence[Any] = ()

    def with_statuses(self, statuses: Sequence[Any]) -> "QuotaExceeded":
        """Return the error with the quotas' statuses attached."""
        self.statuses = statuses
        return self


class QuotaTooSmall(MillstreamError):
    """The call exceeds the burst size of a quota and can never succeed."""

    code = ErrorCode.QUOTA_TOO_SMALL


class QuotaReached(MillstreamError):
    """The namespace has reached a quota."""

    code = ErrorCode.QUOTA_REACHED
