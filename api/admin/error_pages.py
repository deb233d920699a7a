"""Error pages, and the redirect to the login page."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from api.admin.rendering import render
from api.http.responses import log_failure
from api.native.dependencies import REQUEST_ID_KEY
from api.native.problems import problem

LOGIN_PATH = "/ui/login"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PageRoute(APIRoute):
    """Route class that shows errors of its routes as pages; passed to a router."""

    def get_route_handler(self) -> Handler:
        """FastAPI's, with refusals as pages."""
        return partial(_with_error_pages, super().get_route_handler())


async def _with_error_pages(handle: Handler, request: Request) -> Response:
    try:
        return await handle(request)
    except Exception as error:
        page = error_page(request, error)
        request_id = str(request.scope.get(REQUEST_ID_KEY, "")).encode()
        log_failure(error, request.url.path, page.status_code, request_id)
        return page


def error_page(request: Request, error: Exception) -> Response:
    """Render the error page of an exception."""
    if isinstance(error, RequestValidationError):
        status, detail = 400, "The URL has invalid parameters."
    else:
        request_id = request.scope.get(REQUEST_ID_KEY, "")
        response = problem(error, instance=request.url.path, request_id=request_id)
        status, detail = response.status, msgspec.json.decode(response.body)["detail"]
    return render(request, "error.html", status, status=status, detail=detail)


def to_login(path: str, query: bytes) -> Response:
    """Redirect to the login page, which leads back to the requested page."""
    target = f"{path}?{query.decode('latin-1')}" if query else path
    return RedirectResponse(f"{LOGIN_PATH}?next={quote(target, safe='')}", 303)
