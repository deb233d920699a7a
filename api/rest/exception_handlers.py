"""Handlers that turn FastAPI's errors into problems."""

from collections.abc import Collection, Sequence
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from api.auth.audit import Auditing
from api.errors import HttpError, HttpErrorCode
from api.http.validation_errors import from_pydantic
from api.native.dependencies import REQUEST_ID_KEY
from api.native.problems import PROBLEM_JSON, problem
from api.rest.path_suggestions import PathSuggestions
from storage.domain.access.audit import ApiProtocol
from storage.domain.errors import MillstreamError, Unauthenticated

DASHBOARD = "/ui"
ENTRY_POINTS = f": the API is at /v1, described by /openapi.json and tried at /docs; the dashboard is at {DASHBOARD}."


def install_handlers(app: FastAPI) -> None:
    """Answer every error of the control plane with a problem."""
    app.add_exception_handler(RequestValidationError, _refuse_input)
    app.add_exception_handler(HTTPException, _refuse_route)
    for kind in (MillstreamError, HttpError, Exception):
        app.add_exception_handler(kind, answer_problem)


async def answer_problem(request: Request, error: Exception) -> Response:
    """Respond with the problem of `error`. Failed logins are recorded in the audit log."""
    if isinstance(error, Unauthenticated):
        _note(request, error)
    response = problem(
        error, instance=request.url.path, request_id=request.scope.get(REQUEST_ID_KEY, "")
    )
    headers = {name.decode(): value.decode() for name, value in response.headers}
    return Response(response.body, response.status, headers, media_type=PROBLEM_JSON)


def _note(request: Request, error: Unauthenticated) -> None:
    auditing = cast(Auditing, request.app.state.auditing)
    scope = request.scope
    request_id = str(scope.get(REQUEST_ID_KEY, "")).encode()
    auditing.record_anonymous_failure(
        error,
        protocol=ApiProtocol.REST,
        client=scope.get("client"),
        headers=dict(scope["headers"]),
        request_id=request_id,
    )


async def _refuse_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return await answer_problem(request, _from_fastapi(request, error.errors()))


def _from_fastapi(request: Request, errors: Sequence[Any]) -> Exception:
    """Convert FastAPI's validation errors to one error."""
    for error in errors:
        if error["type"] == "json_invalid":
            return HttpError(
                HttpErrorCode.MALFORMED_JSON, f"The body cannot be parsed: {_why(error)}."
            )
    return from_pydantic(errors, _fields_of(request))


def _fields_of(request: Request) -> Collection[str]:
    """Return the fields that the body of the request may have."""
    body = getattr(request.scope.get("route"), "body_field", None)
    kind = body and body.field_info.annotation
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else ()


async def _refuse_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, HttpError):  # raised while FastAPI read the body
        return await answer_problem(request, error.__cause__)
    if _is_browser_navigation(request):
        return RedirectResponse(DASHBOARD)
    return await answer_problem(request, _from_starlette(request, error))


def _is_browser_navigation(request: Request) -> bool:
    """Return whether a browser opened the bare address of the service."""
    asks_for_page = "text/html" in request.headers.get("accept", "")
    return request.url.path == "/" and request.method == "GET" and asks_for_page


def _from_starlette(request: Request, error: HTTPException) -> HttpError:
    """Return the error for a path or method without a route, counting fast routes."""
    if error.status_code in (404, 405):
        method, path = request.method, request.url.path
        suggestions: PathSuggestions = request.app.state.path_suggestions
        if allowed := ", ".join(_methods(request)):
            meant = suggestions.of_method(method, path)
            return HttpError(
                HttpErrorCode.METHOD_NOT_ALLOWED,
                f"Method {method} is not allowed for {path}; allowed: {allowed}{_hint(meant)}",
                ((b"allow", allowed.encode()),),
            )
        meant = suggestions.of_path(method, path)
        reason = _hint(meant) if meant else ENTRY_POINTS
        return HttpError(HttpErrorCode.NOT_FOUND, f"{path} does not exist{reason}")
    return HttpError(HttpErrorCode.BAD_REQUEST, str(error.detail))


def _hint(meant: str) -> str:
    return f"; did you mean '{meant}'?" if meant else "."


def _methods(request: Request) -> list[str]:
    """Return the methods that the path supports on either plane."""
    methods = set(request.app.state.hot_methods(request.url.path))
    for route in request.app.state.cold_routes:
        if route.path_regex.match(request.url.path):
            methods |= route.methods
    return sorted(methods)


def _why(error: Any) -> str:
    return str(error.get("ctx", {}).get("error", error["msg"]))
