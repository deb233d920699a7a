"""What goes wrong, as classes.

MillstreamError
├── ConnectionFailed          the service cannot be reached: nothing happened
├── OutcomeUnknown            no answer came: it may have happened, and repeating it is not safe
├── Refused                   the service answered with a problem
│   ├── BadRequest            400, 405, 413, 415, 422: the call says something that is not allowed
│   ├── Unauthenticated 401   ├── Forbidden 403   ├── NotFound 404
│   ├── Conflict 409          it is not in the state for that
│   ├── Gone 410, 416         the offset is not there any more, or not yet
│   ├── PreconditionFailed 412
│   ├── Limited 429           too much at once: later
│   ├── ServerFailed 5xx      and Unavailable 503, which is worth another try
│   └── TimedOut 504          it may have happened
├── PartlyRefused             some items of a batch were refused
└── Lost                      a subscription cannot go on
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

RETRY_AFTER = "retry-after"


class MillstreamError(Exception):
    """Something went wrong. `outcome_unknown`: what was asked may have happened."""

    outcome_unknown = False
    retryable = False
    retry_after_s = 0.0


class ConnectionFailed(MillstreamError):
    """The service cannot be reached. Nothing happened."""

    retryable = True


class NotAnAddress(ConnectionFailed):
    """The URL is not one of HTTP."""

    retryable = False


class OutcomeUnknown(MillstreamError):
    """The call was sent and no answer came: it may have happened."""

    outcome_unknown = True
    retryable = True


@dataclass(frozen=True)
class Fault:
    """One fault of an input: where it is (a JSON Pointer), what is wrong, and its code."""

    pointer: str
    detail: str
    code: str


class Refused(MillstreamError):
    """The service answered with a problem, or with a status that is none of its own.

    `code` is its stable word, `status` the HTTP status, `errors` the faults of an input, `members` all it said.
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
    """The call says something that is not allowed."""


class Unauthenticated(Refused):
    """There is no credential, or it is not accepted."""


class Forbidden(Refused):
    """The credential does not allow it."""


class NotFound(Refused):
    """There is no such thing."""


class Conflict(Refused):
    """It is not in the state for that."""


class Gone(Refused):
    """The offset is not there any more, or not yet."""


class PreconditionFailed(Refused):
    """A condition of the call does not hold."""


class Limited(Refused):
    """Too much at once."""


class ServerFailed(Refused):
    """The service failed."""


class Unavailable(ServerFailed):
    """The service, or a store of it, is away."""


class TimedOut(ServerFailed):
    """The service did not hear from its store: it may have happened."""


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


def refused(response: httpx.Response) -> Refused:
    """The error of an answer that is none of the 2xx."""
    status = response.status_code
    return refusal(status, _members(response, status), retry_after_s(response))


def refusal(status: int, members: dict[str, Any], retry_after: float = 0.0) -> Refused:
    """The error of a problem's members."""
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
    """Of an answer that is not the service's, but of something in front of it."""
    if status == 429:
        return {"retryable": True}
    if status in (502, 503, 504):
        return {"retryable": True, "outcome": "unknown"}
    return {}


def retry_after_s(response: httpx.Response) -> float:
    """The seconds of Retry-After; 0 where there are none."""
    try:
        return max(0.0, float(response.headers.get(RETRY_AFTER, 0)))
    except ValueError:  # a date: nobody sends one here
        return 0.0


def unsent_or_unknown(error: httpx.TransportError, url: str) -> MillstreamError:
    """What an error of the connection means: only before the connection stood nothing was sent."""
    kind = type(error).__name__
    if isinstance(error, httpx.UnsupportedProtocol):
        return NotAnAddress(f"{url} is not the URL of a service: {error}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return ConnectionFailed(f"{url} cannot be reached: {str(error) or kind}")
    return OutcomeUnknown(f"No answer came from {url}: {str(error) or kind}")


class ItemRefused(MillstreamError):
    """One item of a batch was refused."""

    def __init__(self, code: str, detail: str, retryable: bool) -> None:
        self.code = code
        self.detail = detail
        self.retryable = retryable
        super().__init__(f"{detail} ({code})")


class PartlyRefused(MillstreamError):
    """Some items of a batch were refused; `results` has one for each, in their order: a result or an ItemRefused."""

    def __init__(self, results: Sequence[Any]) -> None:
        self.results = tuple(results)
        failed = [one for one in self.results if isinstance(one, ItemRefused)]
        self.retryable = all(one.retryable for one in failed)
        super().__init__(
            f"{len(failed)} of {len(self.results)} were refused; the first: {failed[0]}"
        )


class Lost(MillstreamError):
    """A subscription cannot go on. `code` is what its WebSocket was closed with."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(f"{reason or 'The connection was closed'} ({code})")
