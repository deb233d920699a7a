"""Problems of the in-memory service, with the codes of the real one."""

from typing import Any

from millstream_client.core.tables import STATUSES

RETRYABLE = frozenset({429, 503, 504})
CODES = {500: "internal_error", 503: "storage_unavailable", 504: "storage_timeout"}
CODES |= {401: "unauthenticated", 403: "forbidden", 429: "quota_exceeded"}
UNKNOWN = frozenset({"internal_error", "storage_timeout"})


class Problem(Exception):
    """A rejection. `members` are added to the problem."""

    def __init__(
        self, code: str, detail: str, *, status: int | None = None, **members: Any
    ) -> None:
        self.code = code
        self.detail = detail
        self.status = status or STATUSES[code]
        self.members = members
        super().__init__(detail)

    @property
    def fields(self) -> dict[str, Any]:
        """Return the members of the problem."""
        outcome = {"outcome": "unknown"} if self.code in UNKNOWN else {}
        return {**self.item, "status": self.status, **outcome, **self.members}

    @property
    def item(self) -> dict[str, Any]:
        """Return the error of one item of a batch."""
        retryable = self.status in RETRYABLE
        return {"code": self.code, "detail": self.detail, "retryable": retryable}


def unsupported(detail: str) -> Problem:
    """Return the problem of a request that needs the real service."""
    return Problem("not_in_memory", f"The in-memory service has no {detail}.", status=501)


def invalid(pointer: str, detail: str, code: str) -> Problem:
    """Return the problem of an invalid field."""
    fault = {"pointer": pointer, "detail": detail, "code": code}
    return Problem("validation_failed", detail, errors=[fault])


def injected(status: int) -> Problem:
    """Return the problem that a test asked for."""
    code = CODES.get(status, f"http_{status}")
    return Problem(code, f"The test asked for status {status}.", status=status)
