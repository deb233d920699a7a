"""Is the process alive, and can it serve? Asked by supervisors and load balancers, without credentials."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from storage.operations.health import Health

LIVE_PATH = "/livez"
READY_PATH = "/readyz"
PATHS = frozenset({LIVE_PATH, READY_PATH, "/healthz"})
"""They skip the gate: a supervisor has no credentials."""

CHECK_SECONDS_MAX = 1.0
CACHE_SECONDS = 1.0

router = APIRouter(tags=["health"])


class LiveOut(BaseModel):
    """The event loop answers."""

    status: str


class ReadyOut(BaseModel):
    """`ok`, or `fail` and which check says what."""

    status: str
    checks: dict[str, str]


class Readiness:
    """The storage room's checks, asked at most once a second however many ask."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._lock = asyncio.Lock()
        self._checks: dict[str, str] = {}
        self._checked_at = float("-inf")

    async def checks(self) -> dict[str, str]:
        """The name of each check, and 'ok' or what is wrong."""
        async with self._lock:
            if time.monotonic() - self._checked_at >= CACHE_SECONDS:
                self._checks = await self._ask()
                self._checked_at = time.monotonic()
            return self._checks

    async def _ask(self) -> dict[str, str]:
        try:
            return await asyncio.wait_for(self._health.check(), CHECK_SECONDS_MAX)
        except TimeoutError:
            return {"storage": f"no answer within {CHECK_SECONDS_MAX:g} s"}


def readiness_of(request: Request) -> Readiness:
    """This process's readiness."""
    readiness: Readiness = request.app.state.readiness
    return readiness


@router.get(LIVE_PATH)
@router.get("/healthz", include_in_schema=False)
async def check_live() -> LiveOut:
    """Say that the process is alive; nothing else is looked at."""
    return LiveOut(status="ok")


@router.get(
    READY_PATH,
    response_model=ReadyOut,
    responses={503: {"model": ReadyOut, "description": "Not ready"}},
)
async def check_ready(
    readiness: Annotated[Readiness, Depends(readiness_of)],
) -> JSONResponse:
    """Say whether requests can be served: the stores answer and are of the right version."""
    checks = await readiness.checks()
    ready = all(found == "ok" for found in checks.values())
    return JSONResponse(
        {"status": "ok" if ready else "fail", "checks": checks},
        status_code=200 if ready else 503,
        headers={} if ready else {"retry-after": "1"},
    )
