"""`millstream queue`: what queues there are, and how they are configured. Their messages are in `messages`."""

from typing import Annotated, Any

import typer

from api.cli.shell.options import (
    OnlyNew,
    Prefix,
    QueueName,
    QueueNames,
    Settings,
    Yes,
    duration,
    fields,
)
from api.cli.shell.output import Column, Row, table, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

queue = noun("Queues: work to be done once.")

QUEUES = table(
    "name",
    "type",
    Column("visibility_timeout_seconds", "visibility"),
    Column("attempts_max", "attempts"),
    Column("dead_letters.queue", "dead letters to"),
    "paused",
    Column("created_at", "created"),
)
COUNTS = table(
    "name", "ready", "delayed", "in_flight", "parked", "dead_lettered", "oldest_ready_at"
)

Visibility = Annotated[Any, duration("--visibility", help="How long a received message is hidden.")]
Delay = Annotated[
    Any, duration("--delay", help="How long a new message waits before it can be received.")
]
Ttl = Annotated[Any, duration("--ttl", help="How long a message may wait before it expires.")]
Attempts = Annotated[
    int | None, typer.Option("--attempts", help="Failures until a message becomes a dead letter.")
]


@verb(
    queue,
    "create",
    examples=[
        "millstream queue create orders",
        "millstream queue create mails --fifo --visibility 2m --attempts 3",
        'millstream queue create retries --set \'backoff={"kind":"exponential"}\'',
    ],
)
def create(
    cli: Terminal,
    name: QueueName,
    fifo: Annotated[
        bool, typer.Option("--fifo", help="A FIFO queue: in order within a group.")
    ] = False,
    visibility: Visibility = None,
    delay: Delay = None,
    ttl: Ttl = None,
    attempts: Attempts = None,
    new: OnlyNew = False,
    set_: Settings = None,
) -> None:
    """Create a queue, or replace its configuration."""
    config = fields(
        set_,
        type="fifo" if fifo else None,
        visibility_timeout_seconds=visibility,
        delay_seconds=delay,
        ttl_seconds=ttl,
        attempts_max=attempts,
    )
    made = cli.client.queue(name).create(only_new=new, **config)
    cli.out.done(f"Queue {name} created or updated.", to_row(made))


@verb(
    queue,
    "change",
    examples=[
        "millstream queue change orders --visibility 1m",
        "millstream queue change orders --set paused=true",
        "millstream queue change orders --set paused=false",
    ],
)
def change(
    cli: Terminal,
    name: QueueName,
    visibility: Visibility = None,
    delay: Delay = None,
    ttl: Ttl = None,
    attempts: Attempts = None,
    set_: Settings = None,
) -> None:
    """Change some of a queue's configuration; null takes a field back to its default."""
    config = fields(
        set_,
        visibility_timeout_seconds=visibility,
        delay_seconds=delay,
        ttl_seconds=ttl,
        attempts_max=attempts,
    )
    changed = cli.client.queue(name).change(**config)
    cli.out.done(f"Queue {name} is changed.", to_row(changed))


@verb(
    queue,
    "ls",
    examples=[
        "millstream queue ls",
        "millstream queue ls --counts",
        "millstream queue ls -o json | jq -r '.[].name'",
    ],
)
def list_queues(
    cli: Terminal,
    prefix: Prefix = "",
    counts: Annotated[
        bool,
        typer.Option("--counts", help="Show how many messages they have; one more call for each."),
    ] = False,
) -> None:
    """List the queues."""
    found = map(to_row, cli.client.queues(prefix))
    if counts:
        cli.out.rows((_counted(cli, row) for row in found), COUNTS)
    else:
        cli.out.rows(found, QUEUES)


def _counted(cli: Terminal, row: Row) -> Row:
    return {"name": row["name"], **to_row(cli.client.queue(row["name"]).stats())}


@verb(
    queue,
    "show",
    examples=[
        "millstream queue show orders",
        "millstream queue show orders -o json | jq .stats.ready",
    ],
)
def show(cli: Terminal, name: QueueName) -> None:
    """Show a queue's configuration, and how many messages it has in which state."""
    found = cli.client.queue(name)
    cli.out.show({**to_row(found.config()), "stats": to_row(found.stats())}, stats=None)


@verb(
    queue,
    "purge",
    examples=["millstream queue purge mails --yes"],
)
def purge(cli: Terminal, name: QueueName, yes: Yes = False) -> None:
    """Drop all messages of a queue, those in flight too. Its dead letters stay."""
    stats = cli.client.queue(name).stats()
    waiting = stats.ready + stats.delayed + stats.in_flight + stats.parked
    confirm(cli, f"{waiting} messages of queue {name} will be dropped for good.", name, yes=yes)
    purged = cli.client.queue(name).purge()
    cli.out.done(f"{purged} messages of queue {name} are gone.", {"purged": purged})


@verb(queue, "rm", examples=["millstream queue rm retries mails orders --yes"])
def remove(cli: Terminal, names: QueueNames, yes: Yes = False) -> None:
    """Delete queues with all their messages."""
    for name in names:
        stats = cli.client.queue(name).stats()
        held = stats.ready + stats.delayed + stats.in_flight + stats.parked + stats.dead_lettered
        confirm(
            cli, f"Queue {name} and its {held} messages will be deleted for good.", name, yes=yes
        )
        cli.client.queue(name).delete()
        cli.out.done(f"Queue {name} is deleted.", {"name": name, "deleted": True})
