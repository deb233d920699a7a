"""Errors of authentication, permissions and secrets."""

from storage.domain.errors.codes import ErrorCode
from storage.domain.errors.error import MillstreamError


class Unauthenticated(MillstreamError):
    """Missing or invalid credentials."""

    code = ErrorCode.UNAUTHENTICATED


class Forbidden(MillstreamError):
    """The caller is not allowed to do this."""

    code = ErrorCode.FORBIDDEN


class KeyNotFound(MillstreamError):
    """The key does not exist."""

    code = ErrorCode.KEY_NOT_FOUND


class KeyRefused(MillstreamError):
    """The key's state does not allow this."""

    code = ErrorCode.KEY_REFUSED


class SecretsOff(MillstreamError):
    """The deployment has no secret_keys and cannot store secrets."""

    code = ErrorCode.SECRETS_OFF


class SecretUnreadable(MillstreamError):
    """A stored secret was encrypted with a key that is not in the deployment's secret_keys."""

    code = ErrorCode.SECRET_UNREADABLE
