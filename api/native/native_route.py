"""Route class of the native API, which refuses what an operation does not take.

A misspelled qualifier must not be ignored: `DELETE /v1/queues/orders?if_empty=true` would delete a full queue.
"""

import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

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


class NativeRoute(APIRoute):
    """Route that rejects unknown query parameters, headers and bodies."""

    def get_route_handler(self) -> Handler:
        """Return FastAPI's handler behind the checks."""
        handle: Handler = super().get_route_handler()
        parameters = frozenset(_query_parameters(self.dependant))
        if "requestBody" in (self.openapi_extra or {}):  # the handler reads it by itself
            return partial(_checked, handle, parameters)
        return partial(_checked_with_body, handle, parameters, self.body_field is not None)


async def _checked_with_body(
    handle: Handler, parameters: frozenset[str], takes_body: bool, request: Request
) -> Response:
    body = await request.body()
    if not takes_body and body.strip() not in _EMPTY:
        raise ValidationFailed("The operation takes no request body.")
    if _UNSTORABLE.search(body):
        _check_texts(body)
    return await _checked(handle, parameters, request)


async def _checked(handle: Handler, parameters: frozenset[str], request: Request) -> Response:
    refuse_field_headers(dict(request.scope["headers"]))
    if request.scope["query_string"]:
        refuse_parameters(list(request.query_params), parameters)
        _check_text(request.query_params, "")
    return await handle(request)


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


def _query_parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the query parameters of an operation and of what it depends on."""
    for parameter in dependant.query_params:
        yield parameter.alias
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)
