"""`millstream namespace`: tenants and their quotas."""

from typing import Annotated, Any

import typer

from api.cli.shell.definitions import Definition, delete_verb, put_verbs
from api.cli.shell.options import Prefix, Settings, fields, option
from api.cli.shell.output import table
from api.cli.shell.terminal import Terminal, noun, verb

namespace = noun()

NAMESPACES = table(
    "name",
    "account_id",
    "rates.calls_per_second",
    "rates.messages_per_second",
    "rates.bytes_per_second",
    "stored_bytes",
    "stored_bytes_max",
)

Name = Annotated[str, typer.Argument(help="Namespace.")]
Names = Annotated[list[str], typer.Argument(help="Namespaces.")]


def _configuration(
    calls: Annotated[float | None, option("--calls", "Maximum calls per second.")] = None,
    messages: Annotated[float | None, option("--messages", "Maximum messages per second.")] = None,
    size: Annotated[float | None, option("--bytes", "Maximum bytes per second.")] = None,
    burst: Annotated[
        float | None, option("--burst", "Burst size, in seconds at the full rate.")
    ] = None,
    set_: Settings = None,
) -> dict[str, Any]:
    rates = fields(
        None,
        calls_per_second=calls,
        messages_per_second=messages,
        bytes_per_second=size,
        burst_seconds=burst,
    )
    return fields(set_, rates=rates or None)


NAMESPACE = Definition(
    namespace,
    "Namespace",
    Name,
    "namespaces.{}_namespace",
    _configuration,
    lambda stored: f" Account ID: {stored['account_id']}.",
)

put_verbs(
    NAMESPACE,
    create=["millstream namespace create acme"],
    apply=[
        "millstream namespace apply acme --calls 1000 --messages 5000 --set queues_max=50",
    ],
)


@verb(namespace, "ls", examples=["millstream namespace ls"])
def list_namespaces(cli: Terminal, prefix: Prefix = "") -> None:
    """List namespaces."""
    cli.out.rows(cli.pages("namespaces.list_namespaces", prefix=prefix), NAMESPACES)


@verb(namespace, "show", examples=["millstream namespace show default"])
def show(cli: Terminal, name: Name) -> None:
    """Show a namespace with account id and quotas."""

    cli.out.show(cli.call("namespaces.get_namespace", name))


@delete_verb(NAMESPACE, Names, "millstream namespace rm acme --yes")
def remove(_: Terminal, name: str) -> str:
    """Delete empty namespaces."""
    return f"Namespace {name} will be deleted."
