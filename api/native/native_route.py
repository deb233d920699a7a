"""Route class of the native API, which refuses what an operation does not take.

A misspelled qualifier must not be ignored: `DELETE /v1/queues/orders?if_empty=true` would delete a full queue.
"""

from collections.abc import Callable, Coroutine, Iterator
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

_EMPTY = (b"", b"{}", b"null")


class NativeRoute(APIRoute):
    """Route that rejects unknown query parameters, headers and bodies."""

    def get_route_handler(self) -> Handler:
        """Return FastAPI's handler behind the checks."""
        handle: Handler = super().get_route_handler()
        parameters = frozenset(_query_parameters(self.dependant))
        return partial(_checked, handle, parameters, takes_body=self.body_field is not None)


async def _checked(
    handle: Handler, parameters: frozenset[str], request: Request, *, takes_body: bool
) -> Response:
    refuse_field_headers(dict(request.scope["headers"]))
    if request.scope["query_string"]:
        refuse_parameters(list(request.query_params), parameters)
    if not takes_body and (await request.body()).strip() not in _EMPTY:
        raise ValidationFailed("The operation takes no request body.")
    return await handle(request)


def _query_parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the query parameters of an operation and of what it depends on."""
    for parameter in dependant.query_params:
        yield parameter.alias
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)
