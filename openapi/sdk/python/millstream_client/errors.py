"""Exceptions of the client.

MillstreamError
├── ConnectionFailed          the service is unreachable: nothing happened
│   └── NeverConnected        and was never reached by this client
├── OutcomeUnknown            no response: the call may have taken effect, and a repeat is not safe
├── Refused                   the service responded with a problem
│   ├── BadRequest            400, 405, 413, 415, 422: the request is invalid
│   ├── Unauthenticated 401   ├── Forbidden 403   ├── NotFound 404
│   ├── Conflict 409          the state of the resource does not allow the call
│   │   └── AlreadyExists 412 the object to create exists with other settings
│   ├── Gone 410, 416         the offset has expired, or does not exist yet
│   ├── PreconditionFailed 412
│   ├── Limited 429           over a limit: retry later
│   ├── ServerFailed 5xx      and Unavailable 503, which can be retried
│   └── TimedOut 504          the call may have taken effect
├── NoReply                   no reply to a request before its deadline
├── PartlyRefused             some items of a batch were rejected
└── Lost                      a subscription cannot continue
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

RETRY_AFTER = "retry-after"
IS_IT_RUNNING = "Is the service running? Start one with `millstream up`."


class MillstreamError(Exception):
    """The call failed. `outcome_unknown`: it may have taken effect."""

    outcome_unknown = False
    retryable = False
    retry_after_s = 0.0


class NoReply(MillstreamError):
    """No reply arrived before the deadline of the request."""


class ConnectionFailed(MillstreamError):
    """The service is unreachable. Nothing happened."""

    retryable = True


class NeverConnected(ConnectionFailed):
    """No connection was ever made: the service is not running, or has another URL."""

    retryable = False

    def __init__(self, failure: str) -> None:
        self.failure = failure
        super().__init__(f"{failure.rstrip('.')}. {IS_IT_RUNNING}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failure,)


class NotAnAddress(ConnectionFailed):
    """The URL is not an HTTP URL."""

    retryable = False


class NotMillstream(MillstreamError):
    """Something answered at the URL that is not Millstream, or an incompatible version of it."""

    def __init__(self, url: str, status: int, content_type: str) -> None:
        self.url = url
        self.status = status
        self.content_type = content_type
        answer = f"HTTP {status}, {content_type or 'no content type'}"
        super().__init__(f"{url} answers, but it is not Millstream ({answer})")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.url, self.status, self.content_type)


class OutcomeUnknown(MillstreamError):
    """The call was sent but got no response: it may have taken effect."""

    outcome_unknown = True
    retryable = True


@dataclass(frozen=True)
class Fault:
    """A fault of the input: its location (a JSON Pointer), a description, and its code."""

    pointer: str
    detail: str
    code: str


class Refused(MillstreamError):
    """The service responded with a problem, or with an unexpected status.

    `code` is the stable error code, `status` the HTTP status, `errors` the faults of the input, `members` all members of the
    problem.
    """

    def __init__(self, status: int, members: dict[str, Any], retry_after_s: float = 0.0) -> None:
        self.status = status
        self.members = members
        self.retry_after_s = retry_after_s
        self.code = str(members.get("code", f"http_{status}"))
        self.detail = str(members.get("detail", f"The answer was {status}."))
        self.request_id = str(members.get("request_id", ""))
        self.retryable = bool(members.get("retryable", False))
        self.outcome_unknown = members.get("outcome") == "unknown"
        self.errors = tuple(_faults(members.get("errors")))
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        places = [f"{fault.pointer}: {fault.detail}" for fault in self.errors if fault.pointer]
        told = f"{self.detail} [{'; '.join(places)}]" if places else self.detail
        return f"{told} ({self.code})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.members, self.retry_after_s)


def _faults(told: Any) -> list[Fault]:
    faults = told if isinstance(told, list) else []
    return [
        Fault(str(one.get("pointer", "")), str(one.get("detail", "")), str(one.get("code", "")))
        for one in faults
        if isinstance(one, dict)
    ]


class BadRequest(Refused):
    """The request is invalid."""


class Unauthenticated(Refused):
    """The credential is missing or invalid."""


class Forbidden(Refused):
    """The credential does not have the required permission."""


class NotFound(Refused):
    """The resource does not exist."""


class Conflict(Refused):
    """The state of the resource does not allow the call."""


class Gone(Refused):
    """The offset has expired, or does not exist yet."""


class PreconditionFailed(Refused):
    """A precondition of the call does not hold."""


@dataclass(frozen=True)
class Change:
    """A setting that differs: its JSON Pointer, its current value, and the requested one."""

    pointer: str
    before: Any
    after: Any


class AlreadyExists(Conflict, PreconditionFailed):
    """The object to create exists. `changes` are the settings that differ."""

    def __init__(self, status: int, members: dict[str, Any], retry_after_s: float = 0.0) -> None:
        self.current: dict[str, Any] = members["current"]
        self.changes = tuple(
            Change(change["pointer"], change["before"], change["after"])
            for change in members["changes"]
        )
        super().__init__(status, members, retry_after_s)
        self.code = "already_exists"

    def _sentence(self) -> str:
        differences = [
            f"{change.pointer[1:]} is {_shown(change.before)}, not {_shown(change.after)}"
            for change in self.changes
        ]
        return f"{self.detail} {'; '.join(differences)}".strip() + " (already_exists)"


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class Limited(Refused):
    """A limit is exceeded."""


class ServerFailed(Refused):
    """The service failed."""


class Unavailable(ServerFailed):
    """The service or one of its stores is unavailable."""


class TimedOut(ServerFailed):
    """The service's store timed out: the call may have taken effect."""


_FAMILIES: dict[int, type[Refused]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    405: BadRequest,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    413: BadRequest,
    415: BadRequest,
    416: Gone,
    422: BadRequest,
    429: Limited,
    503: Unavailable,
    504: TimedOut,
}


def not_millstream(response: httpx.Response, url: str) -> NotMillstream:
    """Return the error for a response that cannot be decoded."""
    content_type = response.headers.get("content-type", "").partition(";")[0]
    return NotMillstream(url, response.status_code, content_type)


def is_foreign(response: httpx.Response) -> bool:
    """Return whether an error response is a page of another service, not a proxy's."""
    content_type = response.headers.get("content-type", "")
    return content_type.startswith("text/html") and response.status_code in (403, 404, 405)


def refused(response: httpx.Response) -> Refused:
    """Return the error for a response outside 2xx."""
    status = response.status_code
    return refusal(status, _members(response, status), retry_after_s(response))


def refusal(status: int, members: dict[str, Any], retry_after: float = 0.0) -> Refused:
    """Return the error for the members of a problem."""
    if status == 412 and "current" in members:
        return AlreadyExists(status, members, retry_after)
    kind = _FAMILIES.get(status, ServerFailed if status >= 500 else Refused)
    return kind(status, members, retry_after)


def _members(response: httpx.Response, status: int) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        told = None
    if isinstance(told, dict) and "code" in told:
        return told
    return _from_elsewhere(status)


def _from_elsewhere(status: int) -> dict[str, Any]:
    """Return the error for a response that a proxy made, not the service."""
    if status == 429:
        return {"retryable": True}
    if status in (502, 503, 504):
        return {"retryable": True, "outcome": "unknown"}
    return {}


def retry_after_s(response: httpx.Response) -> float:
    """Return the seconds of Retry-After, or 0 without one."""
    try:
        return max(0.0, float(response.headers.get(RETRY_AFTER, 0)))
    except ValueError:  # a date: nobody sends one here
        return 0.0


def unsent_or_unknown(error: httpx.TransportError, url: str) -> MillstreamError:
    """Classify a connection error.

    Nothing was sent only if the connection was not yet established.
    """
    kind = type(error).__name__
    if isinstance(error, httpx.UnsupportedProtocol):
        return NotAnAddress(f"{url} is not the URL of a service: {error}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return ConnectionFailed(f"Cannot reach {url}: {str(error) or kind}")
    return OutcomeUnknown(f"No answer came from {url}: {str(error) or kind}")


class ItemRefused(MillstreamError):
    """One item of a batch was rejected."""

    def __init__(self, code: str, detail: str, retryable: bool) -> None:
        self.code = code
        self.detail = detail
        self.retryable = retryable
        super().__init__(f"{detail} ({code})")


class PartlyRefused(MillstreamError):
    """Some items of a batch were rejected.

    `results` has one entry per item, in order: a result or an ItemRefused.
    """

    def __init__(self, results: Sequence[Any]) -> None:
        self.results = tuple(results)
        failed = [one for one in self.results if isinstance(one, ItemRefused)]
        self.retryable = all(one.retryable for one in failed)
        super().__init__(
            f"{len(failed)} of {len(self.results)} were refused; the first: {failed[0]}"
        )


class Lost(MillstreamError):
    """The subscription cannot continue. `code` is the close code of its WebSocket."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"{reason or 'The connection was closed'} ({code})")
