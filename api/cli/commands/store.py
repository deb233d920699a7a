"""`millstream store`: the stores of the deployment, and changes of the primary."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.config.process_settings import settings_from_cli
from api.cli.errors import CliError, ExitCode
from api.cli.shell.operations import JsonBody, operation
from api.cli.shell.options import DataOption
from api.cli.shell.output import Column, Row, table, to_row
from api.cli.shell.terminal import Terminal, noun, verb

store = noun()

MEMBERS = table(
    "address",
    "role",
    "state",
    "epoch",
    "position",
    Column("lag_bytes", "lag"),
    Column("memory_used_bytes", "memory"),
    "version",
    "pid",
)

StoreAddress = Annotated[str, typer.Argument(help="Store, as printed by `status`: host:port.")]


@verb(store, "status", examples=["millstream store status"])
def show_status(cli: Terminal) -> None:
    """Show the stores and their replication."""
    stores = cli.call("stores.get_stores")
    if cli.out.for_people:
        cli.out.rows(iter(stores["members"]), MEMBERS)
        cli.print_notice(_summary(stores))
        for address in stores["unknown_replicas"]:
            cli.print_notice(f"{address} replicates the primary and is not a member: disconnect it")
    else:
        cli.out.show(stores)


def _summary(stores: Row) -> str:
    if stores["replication_factor"] == 1:
        return f"durability {stores['durability']}: one store, no replicas"
    return (
        f"durability {stores['durability']}: {stores['insync_replicas']} of {stores['replication_factor']} stores"
        f" in sync, {stores['min_insync_replicas']} required; state {stores['state']}, epoch {stores['epoch']}"
    )


@verb(
    store,
    "switch-over",
    examples=["millstream store switch-over", "millstream store switch-over store-2:6379"],
)
def switch_over(
    cli: Terminal,
    to: Annotated[
        str | None,
        typer.Argument(help="The new primary. Default: the replica that is furthest."),
    ] = None,
) -> None:
    """Make another store the primary.

    Use it before maintenance of the present one.
    Calls wait meanwhile; none is lost, and none fails.
    """
    _change(cli, "stores.switch_over_stores", {"to": to} if to else {})


@verb(
    store,
    "replace",
    examples=[
        "millstream store replace store-1:6379 store-4:6379",
        "millstream store replace --single --data ./data",
    ],
)
def replace(
    cli: Terminal,
    old: Annotated[str | None, typer.Argument(help="The lost store: host:port.")] = None,
    new: Annotated[
        str | None, typer.Argument(help="The empty store that takes its place: host:port.")
    ] = None,
    single: Annotated[
        bool,
        typer.Option(
            "--single", help="Replace the stores of `up --replicas` by one of them; stop it before."
        ),
    ] = False,
    data: DataOption = None,
) -> None:
    """Replace a lost store, or all by one.

    With --single, the first store of a data directory continues alone, if it has all that was acknowledged.
    """
    if single:
        if old is not None:
            raise CliError("--single takes no stores: the first one remains.", ExitCode.USAGE)
        _become_single(cli, data)
    elif old is None or new is None:
        raise CliError("name the lost store and the empty one, or use --single.", ExitCode.USAGE)
    elif data is not None:
        raise CliError("--data is for --single.", ExitCode.USAGE)
    else:
        _change(cli, "stores.replace_store", {"old": old, "new": new})


def _become_single(cli: Terminal, data: Path | None) -> None:
    from api.cli.ops.single_store import become_single

    place = become_single(settings_from_cli(data=data))
    cli.out.done(f"{place} has one store now. Start it with `millstream up`.", {"data": str(place)})


@verb(store, "add", examples=["millstream store add store-4:6379"])
def add(cli: Terminal, address: StoreAddress) -> None:
    """Add an empty store."""
    _change(cli, "stores.add_store", {"address": address})


@verb(store, "remove", examples=["millstream store remove store-5:6379"])
def remove(cli: Terminal, address: StoreAddress) -> None:
    """Remove a store that is not the primary."""
    _done(cli, to_row(cli.client.call(operation("stores.remove_store", address))))


@verb(store, "min-insync", examples=["millstream store min-insync 3"])
def set_min_insync(
    cli: Terminal,
    count: Annotated[
        int, typer.Argument(min=1, help="Stores that must have a write, including the primary.")
    ],
) -> None:
    """Set how many stores must have a write.

    A write is acknowledged when they have it on disk.
    Raise it before you add stores; remove stores before you lower it.
    """
    _change(cli, "stores.configure_stores", {"min_insync_replicas": count})


@verb(store, "recover", examples=["millstream store recover --accept-loss store-2:6379"])
def recover(
    cli: Terminal,
    address: StoreAddress,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="Accept that writes that only lost stores had are lost."
        ),
    ] = False,
) -> None:
    """Continue with one store after a disaster.

    For when a majority of the stores is permanently lost.
    Acknowledged writes that only the lost stores had are lost; readers receive a gap. Choose the store with the highest epoch
    and position, as `status` shows them.
    """
    if not accept_loss:
        raise CliError(
            "acknowledged writes that only the lost stores had will be lost. Pass --accept-loss to confirm.",
            ExitCode.USAGE,
        )
    _change(cli, "stores.recover_stores", {"accept_loss": True, "from": address})


def _change(cli: Terminal, name: str, body: dict[str, Any]) -> None:
    _done(cli, to_row(cli.client.call(operation(name, body=JsonBody(body)))))


def _done(cli: Terminal, replica_set: Row) -> None:
    cli.out.done(
        f"Primary {replica_set['primary']}, epoch {replica_set['epoch']}; stores:"
        f" {', '.join(replica_set['members'])}; {replica_set['min_insync_replicas']} must have a write.",
        replica_set,
    )
