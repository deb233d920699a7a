"""`millstream socket` and `millstream process`: connections and processes."""

from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.shell.options import Limit
from api.cli.shell.output import Column, table, to_row
from api.cli.shell.terminal import Terminal, noun, verb

socket = noun()
process = noun()


def _sources(subscriptions: list[dict[str, Any]]) -> str:
    return ", ".join(one["source"] for one in subscriptions) or "-"


SOCKETS = table(
    "id",
    "principal",
    "address",
    Column("connected_at", "connected"),
    "queued_bytes",
    Column("subscriptions", show=_sources),
    "process",
)
PROCESSES = table(
    "id",
    "role",
    "host",
    "pid",
    "version",
    "leads",
    Column("started_at", "started"),
    Column("event_loop_lag_seconds", "lag"),
    "sockets",
)


@verb(socket, "ls", examples=["millstream socket ls"])
def list_sockets(cli: Terminal, limit: Limit = 50) -> None:
    """List WebSocket connections, as of a few seconds ago."""
    from millstream_client.core.api.sockets import list_sockets
    from millstream_client.sync.pages import all_pages

    def list_page(cursor: str) -> Any:
        return list_sockets.list_sockets(cursor=cursor)

    cli.out.rows(map(to_row, islice(all_pages(cli.client.transport, list_page), limit)), SOCKETS)


@verb(socket, "close")
def close(
    cli: Terminal,
    sockets: Annotated[list[str], typer.Argument(help="Socket ids, as printed by `ls`.")],
) -> None:
    """Close WebSocket connections. What they hold is released, and clients can reconnect."""
    from millstream_client.core.api.sockets.close_socket import close_socket

    for id_ in sockets:
        cli.client.call(close_socket(id_))
        cli.out.done(f"Closing socket {id_}.", {"id": id_})


@verb(process, "ls", examples=["millstream process ls"])
def list_processes(cli: Terminal) -> None:
    """List the processes of the deployment by role."""
    from millstream_client.core.api.processes.list_processes import list_processes

    cli.out.rows(map(to_row, cli.client.call(list_processes()).items), PROCESSES)
