"""Queries that run once: their states and rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from millstream_client.aio.resources import AsyncResource
from millstream_client.core.api.queries.cancel_query import cancel_query
from millstream_client.core.api.queries.get_query import get_query
from millstream_client.core.api.queries.run_query import run_query
from millstream_client.core.models.query_config import QueryConfig
from millstream_client.core.models.query_config_from import QueryConfigFrom
from millstream_client.errors import refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream_client.aio.transport import AsyncTransport
    from millstream_client.core.models.query_out import QueryOut
    from millstream_client.core.models.query_result_out import QueryResultOut
    from millstream_client.core.params import QueryConfigParams, QueryRelationConfigParams

OVER = frozenset({"done", "failed", "cancelled"})
LOOK_S = 0.5
INVALID = 422


class AsyncQuery(AsyncResource):
    """A query by its id, whether it exists or not. Raises MillstreamError."""

    async def status(self) -> QueryResultOut:
        """Return the state, with the rows once it is `done`."""
        return await self.transport.call(get_query(self.name))

    async def watch(self, every_seconds: float = LOOK_S) -> AsyncIterator[QueryResultOut]:
        """Yield the status repeatedly until the query has ended."""
        while True:
            status = await self.status()
            yield status
            if str(status.state) in OVER:
                return
            await self.transport.sleep(every_seconds)

    async def cancel(self) -> QueryOut:
        """Cancel the query; one that has ended stays as it is."""
        return await self.transport.call(cancel_query(self.name))


async def run(
    transport: AsyncTransport,
    sql: str,
    from_: Mapping[str, QueryRelationConfigParams],
    **config: Unpack[QueryConfigParams],
) -> QueryResultOut:
    """Run a query, and wait for its rows.

    Raises Refused if it is refused, fails or is cancelled.
    """
    relations = {name: dict(fields) for name, fields in from_.items()}
    call = run_query(body=QueryConfig(sql, QueryConfigFrom()))
    query = await transport.call(replace(call, json={"sql": sql, "from": relations, **config}))
    if str(query.state) not in OVER:
        async for status in AsyncQuery(transport, query.id).watch():
            query = status
    if str(query.state) != "done":
        detail = query.failure or "The query was cancelled."
        raise refusal(INVALID, {"code": "query_failed", "detail": detail})
    return query
