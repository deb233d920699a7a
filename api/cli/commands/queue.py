"""`millstream queue`: queues and their configuration."""

from typing import Annotated, Any

import typer

from api.cli.shell.definitions import Definition, put_verbs
from api.cli.shell.options import (
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

queue = noun()

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

Visibility = Annotated[Any, duration("--visibility", help="Visibility timeout.")]
Delay = Annotated[Any, duration("--delay", help="Delay before a new message can be received.")]
Ttl = Annotated[Any, duration("--ttl", help="Time to live of messages.")]
Attempts = Annotated[
    int | None,
    typer.Option("--attempts", help="Failed attempts before a message is dead-lettered."),
]


def _configuration(
    fifo: Annotated[
        bool,
        typer.Option(
            "--fifo", help="Create a FIFO queue, which is ordered within each message group."
        ),
    ] = False,
    visibility: Visibility = None,
    delay: Delay = None,
    ttl: Ttl = None,
    attempts: Attempts = None,
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(
        set_,
        type="fifo" if fifo else None,
        visibility_timeout_seconds=visibility,
        delay_seconds=delay,
        ttl_seconds=ttl,
        attempts_max=attempts,
    )


def _put(name: str, **conditions: Any) -> Any:
    from millstream_client.core.api.queues.put_queue import put_queue
    from millstream_client.core.models.queue_config import QueueConfig

    return put_queue(name, body=QueueConfig(), **conditions)


put_verbs(
    queue,
    Definition("Queue", QueueName, _put, _configuration),
    create=[
        "millstream queue create orders",
        "millstream queue create mails --fifo --visibility 2m --attempts 3",
        'millstream queue create retries --set \'backoff={"kind":"exponential"}\'',
    ],
    apply=[
        "millstream queue apply orders --attempts 5 --dry-run",
        "millstream queue apply orders --attempts 5",
    ],
)


@verb(
    queue,
    "change",
    examples=[
        "millstream queue change orders --visibility 1m",
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
    """Change fields of a queue's configuration; null resets a field to its default."""
    config = fields(
        set_,
        visibility_timeout_seconds=visibility,
        delay_seconds=delay,
        ttl_seconds=ttl,
        attempts_max=attempts,
    )
    changed = cli.client.queue(name).change(**config)
    cli.out.done(f"Updated queue {name}.", to_row(changed))


@verb(queue, "pause", examples=["millstream queue pause orders"])
def pause(cli: Terminal, name: QueueName) -> None:
    """Pause delivery: the queue accepts messages and delivers none."""
    cli.out.done(f"Queue {name} paused.", to_row(cli.client.queue(name).pause()))


@verb(queue, "resume", examples=["millstream queue resume orders"])
def resume(cli: Terminal, name: QueueName) -> None:
    """Resume delivery."""
    cli.out.done(f"Queue {name} resumed.", to_row(cli.client.queue(name).resume()))


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
        typer.Option("--counts", help="Show message counts; makes one more call per queue."),
    ] = False,
) -> None:
    """List queues."""
    queues = map(to_row, cli.client.queues(prefix))
    if counts:
        cli.out.rows((_counted(cli, row) for row in queues), COUNTS)
    else:
        cli.out.rows(queues, QUEUES)


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
    """Show a queue's configuration and message counts."""
    handle = cli.client.queue(name)
    cli.out.show({**to_row(handle.config()), "stats": to_row(handle.stats())}, stats=None)


@verb(
    queue,
    "purge",
    examples=["millstream queue purge mails --yes"],
)
def purge(cli: Terminal, name: QueueName, yes: Yes = False) -> None:
    """Delete all messages of a queue, including those in flight. Dead letters are kept."""
    stats = cli.client.queue(name).stats()
    waiting = stats.ready + stats.delayed + stats.in_flight + stats.parked
    confirm(cli, f"{waiting} messages of queue {name} will be permanently deleted.", name, yes=yes)
    purged = cli.client.queue(name).purge()
    cli.out.done(f"Purged {purged} messages of queue {name}.", {"purged": purged})


@verb(queue, "rm", examples=["millstream queue rm retries mails orders --yes"])
def remove(cli: Terminal, names: QueueNames, yes: Yes = False) -> None:
    """Delete queues and their messages."""
    for name in names:
        stats = cli.client.queue(name).stats()
        messages = (
            stats.ready + stats.delayed + stats.in_flight + stats.parked + stats.dead_lettered
        )
        confirm(
            cli,
            f"Queue {name} and its {messages} messages will be permanently deleted.",
            name,
            yes=yes,
        )
        cli.client.queue(name).delete()
        cli.out.done(f"Deleted queue {name}.", {"name": name, "deleted": True})
