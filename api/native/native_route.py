"""Route class of the native API, which refuses what an operation does not take.

A misspelled qualifier must not be ignored: `DELETE /v1/queues/orders?if_empty=true` would delete a full queue.
"""

import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.responses import Response

from api.http.codecs import refuse_field_headers
from api.http.query import refuse_parameters
from storage.domain.errors import ValidationFailed

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

_UNSTORABLE = re.compile(rb"\\u0000|\\ud[89a-f]|\0", re.IGNORECASE)
"""Escapes of NUL and of surrogates, of which a pair is one character."""
_EMPTY = (b"", b"{}", b"null")
_READING = ("GET", "HEAD")
_CONDITIONS = ("if-match", "if-none-match")


class _Accepted(NamedTuple):
    """Names of the query parameters and headers that an operation declares."""

    parameters: frozenset[str]
    headers: frozenset[str]


class NativeRoute(APIRoute):
    """Route that rejects unknown query parameters, headers and bodies."""

    def get_route_handler(self) -> Handler:
        """Return FastAPI's handler behind the checks."""
        handle: Handler = super().get_route_handler()
        dependants = list(_dependants(self.dependant))
        accepted = _Accepted(
            frozenset(one.alias for each in dependants for one in each.query_params),
            frozenset(one.alias for each in dependants for one in each.header_params),
        )
        if "requestBody" in (self.openapi_extra or {}):  # the handler reads it by itself
            return partial(_checked, handle, accepted)
        return partial(_checked_with_body, handle, accepted, self.body_field is not None)


async def _checked_with_body(
    handle: Handler, accepted: _Accepted, takes_body: bool, request: Request
) -> Response:
    body = await request.body()
    if not takes_body and body.strip() not in _EMPTY:
        raise ValidationFailed("The operation takes no request body.")
    if _UNSTORABLE.search(body):
        _check_texts(body)
    return await _checked(handle, accepted, request)


async def _checked(handle: Handler, accepted: _Accepted, request: Request) -> Response:
    refuse_field_headers(dict(request.scope["headers"]))
    if request.method not in _READING:
        _refuse_conditions(request, accepted)
    if request.scope["query_string"]:
        refuse_parameters(list(request.query_params), accepted.parameters)
        _check_text(request.query_params, "")
    return await handle(request)


def _refuse_conditions(request: Request, accepted: _Accepted) -> None:
    """Raise ValidationFailed for a condition that the operation would not check."""
    for name in _CONDITIONS:
        if name in request.headers and name not in accepted.headers:
            detail = f"The operation does not support {name.title()}"
            raise ValidationFailed.at(f"/{name.title()}", detail, "not_supported")


def _check_texts(body: bytes) -> None:
    """Raise ValidationFailed for unstorable texts; FastAPI refuses what is not JSON."""
    try:
        value = json.loads(body)
    except ValueError:
        return
    _check_text(value, "")


def _check_text(value: Any, pointer: str) -> None:
    if isinstance(value, str) and not _is_storable(value):
        detail = "Text cannot contain NUL or half of a surrogate pair"
        raise ValidationFailed.at(pointer, detail, "invalid_text")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _check_text(name, pointer)
            _check_text(inner, f"{pointer}/{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_text(inner, f"{pointer}/{index}")


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _dependants(dependant: Dependant) -> Iterator[Dependant]:
    """Yield an operation and everything that it depends on."""
    yield dependant
    for inner in dependant.dependencies:
        yield from _dependants(inner)
