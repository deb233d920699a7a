"""`millstream namespace`: tenants and their quotas."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from api.cli.shell.definitions import Definition, put_verbs
from api.cli.shell.options import Prefix, Settings, Yes, fields
from api.cli.shell.output import Row, table, to_row
from api.cli.shell.prompts import confirm
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


def _configuration(
    calls: Annotated[
        float | None, typer.Option("--calls", help="Maximum calls per second.")
    ] = None,
    messages: Annotated[
        float | None, typer.Option("--messages", help="Maximum messages per second.")
    ] = None,
    size: Annotated[float | None, typer.Option("--bytes", help="Maximum bytes per second.")] = None,
    burst: Annotated[
        float | None, typer.Option("--burst", help="Burst size, in seconds at the full rate.")
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


def _put(name: str, **conditions: Any) -> Any:
    from millstream_client.core.api.namespaces.put_namespace import put_namespace
    from millstream_client.core.models.namespace_config import NamespaceConfig

    return put_namespace(name, body=NamespaceConfig(), **conditions)


put_verbs(
    namespace,
    Definition(
        "Namespace",
        Name,
        _put,
        _configuration,
        lambda stored: f" Account ID: {stored['account_id']}.",
    ),
    create=["millstream namespace create acme"],
    apply=[
        "millstream namespace apply acme --calls 1000 --messages 5000 --set queues_max=50",
    ],
)


@verb(namespace, "ls", examples=["millstream namespace ls"])
def list_namespaces(cli: Terminal, prefix: Prefix = "") -> None:
    """List namespaces."""
    from millstream_client.core.api.namespaces import list_namespaces

    def list_page(cursor: str) -> Any:
        return list_namespaces.list_namespaces(prefix=prefix, cursor=cursor)

    cli.out.rows(_pages(cli, list_page), NAMESPACES)


def _pages(cli: Terminal, list_page: Any) -> Iterator[Row]:
    from millstream_client.sync.pages import all_pages

    return map(to_row, all_pages(cli.client.transport, list_page))


@verb(namespace, "show", examples=["millstream namespace show default"])
def show(cli: Terminal, name: Name) -> None:
    """Show a namespace, its account id and its quotas."""
    from millstream_client.core.api.namespaces.get_namespace import get_namespace

    cli.out.show(to_row(cli.client.call(get_namespace(name))))


@verb(namespace, "rm", examples=["millstream namespace rm acme --yes"])
def remove(
    cli: Terminal,
    names: Annotated[list[str], typer.Argument(help="Namespaces.")],
    yes: Yes = False,
) -> None:
    """Delete empty namespaces."""
    from millstream_client.core.api.namespaces.delete_namespace import delete_namespace

    for name in names:
        confirm(cli, f"Namespace {name} will be deleted.", name, yes=yes)
        cli.client.call(delete_namespace(name))
        cli.out.done(f"Deleted namespace {name}.", {"name": name, "deleted": True})
