"""`millstream socket` and `millstream process`: connections and processes."""

from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.shell.operations import operation
from api.cli.shell.options import Limit
from api.cli.shell.output import Column, table
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
    """List WebSocket connections.

    As of a few seconds ago.
    """
    cli.out.rows(islice(cli.pages("sockets.list_sockets"), limit), SOCKETS)


@verb(socket, "close")
def close(
    cli: Terminal,
    sockets: Annotated[list[str], typer.Argument(help="Socket ids, as printed by `ls`.")],
) -> None:
    """Close WebSocket connections. What they hold is released, and clients can reconnect."""

    for id_ in sockets:
        cli.client.call(operation("sockets.close_socket", id_))
        cli.out.done(f"Closing socket {id_}.", {"id": id_})


@verb(process, "ls", examples=["millstream process ls"])
def list_processes(cli: Terminal) -> None:
    """List the processes of the deployment by role."""

    cli.out.rows(iter(cli.call("processes.list_processes")["items"]), PROCESSES)
