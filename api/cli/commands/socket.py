"""`millstream socket` and `millstream process`: who is connected, and what a deployment is made of."""

from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.shell.options import Most
from api.cli.shell.output import Column, table, to_row
from api.cli.shell.terminal import Terminal, noun, verb

socket = noun("Sockets: who is connected over WebSocket.")
process = noun("Processes: what a deployment is made of.")


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
    Column("started_at", "started"),
    Column("event_loop_lag_seconds", "lag"),
    "sockets",
)


@verb(socket, "ls", examples=["millstream socket ls"])
def list_sockets(cli: Terminal, most: Most = 50) -> None:
    """List who is connected over WebSocket, as it was some seconds ago."""
    from millstream_client.core.api.sockets import list_sockets
    from millstream_client.sync.pages import all_pages

    def ask(cursor: str) -> Any:
        return list_sockets.list_sockets(cursor=cursor)

    cli.out.rows(map(to_row, islice(all_pages(cli.client.transport, ask), most)), SOCKETS)


@verb(socket, "close")
def close(
    cli: Terminal,
    sockets: Annotated[list[str], typer.Argument(help="Their ids, as `ls` has them.")],
) -> None:
    """Close sockets: what they hold goes to others, and their clients may connect again."""
    from millstream_client.core.api.sockets.close_socket import close_socket

    for id_ in sockets:
        cli.client.call(close_socket(id_))
        cli.out.done(f"Socket {id_} is being closed.", {"id": id_})


@verb(process, "ls", examples=["millstream process ls"])
def list_processes(cli: Terminal) -> None:
    """List the processes of the deployment, by what they do."""
    from millstream_client.core.api.processes.list_processes import list_processes

    cli.out.rows(map(to_row, cli.client.call(list_processes()).items), PROCESSES)
