"""`millstream queue`: queues and their configuration."""

from typing import Annotated, Any

from api.cli.descriptions.problems import queue_problems
from api.cli.descriptions.sections import (
    Section,
    describe,
    measurement_of,
    rows_if_allowed,
    settings_section,
)
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.definitions import Definition, change_verb, delete_verb, pause_verbs, put_verbs
from api.cli.shell.options import (
    Prefix,
    QueueName,
    QueueNames,
    Settings,
    Yes,
    duration,
    fields,
    option,
)
from api.cli.shell.output import Column, Row, show_age_of, table, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

queue = noun()

QUEUES = table(
    "name",
    "type",
    Column("measurement.ready", "ready"),
    Column("measurement.in_flight", "in flight"),
    Column("measurement.delayed", "delayed"),
    Column("measurement.parked", "parked"),
    Column("measurement.dead_lettered", "dead letters"),
    Column("measurement.oldest_ready_at", "oldest", show_age_of),
    Column("measurement.consumers", "consumers"),
    Column("measurement.sent_per_second", "sent/s"),
    Column("measurement.acknowledged_per_second", "acked/s"),
    "paused",
)
_CLIENT_CHARACTERS_MAX = 40


def _shorten(client: Any) -> str:
    """Return the start of the name of a client program; `-o json` has all of it."""
    text = str(client)
    return text if len(text) <= _CLIENT_CHARACTERS_MAX else f"{text[: _CLIENT_CHARACTERS_MAX - 1]}…"


CONSUMERS = table(
    "principal",
    "protocol",
    "address",
    Column("client", "client", _shorten),
    Column("messages_per_second", "messages/s"),
    Column("receives_per_second", "receives/s"),
    "waiting",
    Column("in_flight", "in flight"),
    Column("last_received_at", "last receive", show_age_of),
)
COUNTS = table(
    "name", "ready", "delayed", "in_flight", "parked", "dead_lettered", "oldest_ready_at"
)

MESSAGE_COUNTS = table(
    *("ready", "delayed", "in_flight", "parked", "dead_lettered", "bytes_held"),
    Column("oldest_ready_at", "oldest", show_age_of),
)
RATES = table(
    Column("sent_per_second", "sent"),
    Column("received_per_second", "received"),
    Column("acknowledged_per_second", "acknowledged"),
    Column("failed_per_second", "failed"),
)
ACKNOWLEDGE_TIMES = table(
    Column("acknowledge_p50_seconds", "median"),
    Column("acknowledge_p95_seconds", "95 %"),
    Column("acknowledge_p99_seconds", "99 %"),
)
TOTALS = table("sent", "acknowledged", "expired", "dropped", "purged", "moved_in", "moved_out")
REASONS = table("count", "reason", Column("last_died_at", "last", show_age_of))

Visibility = Annotated[Any, duration("--visibility", help="Visibility timeout.")]
Delay = Annotated[Any, duration("--delay", help="Delay before a new message can be received.")]
Ttl = Annotated[Any, duration("--ttl", help="Time to live of messages.")]
Attempts = Annotated[
    int | None, option("--attempts", "Failed attempts before a message is dead-lettered.")
]

Expires = Annotated[
    Any, duration("--expires-after-idle", help="Delete the queue when it was unused for this time.")
]
Partitions = Annotated[
    int | None, option("--partitions", "Number of logs that share the queue's messages.")
]


def _configuration(
    fifo: Annotated[
        bool, option("--fifo", "Create a FIFO queue, which is ordered within each message group.")
    ] = False,
    visibility: Visibility = None,
    delay: Delay = None,
    ttl: Ttl = None,
    attempts: Attempts = None,
    partitions: Partitions = None,
    expires_after_idle: Expires = None,
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(
        set_,
        type="fifo" if fifo else None,
        visibility_timeout_seconds=visibility,
        delay_seconds=delay,
        ttl_seconds=ttl,
        attempts_max=attempts,
        partitions=partitions,
        expires_after_idle_seconds=expires_after_idle,
    )


QUEUE = Definition(queue, "Queue", QueueName, "queues.{}_queue", _configuration)

put_verbs(
    QUEUE,
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


edit_verb(QUEUE, "millstream queue edit orders")


change_verb(QUEUE, "millstream queue change orders --visibility 1m", without=("fifo",))


pause_verbs(
    QUEUE,
    pause="Pause delivery. The queue accepts messages and delivers none.",
    resume="Resume delivery.",
    example="orders",
)


@verb(
    queue,
    "ls",
    examples=[
        "millstream queue ls",
        "millstream queue ls --counts",
        "millstream queue ls -o json | jq -r '.[] | select(.measurement.ready > 1000) | .name'",
    ],
)
def list_queues(
    cli: Terminal,
    prefix: Prefix = "",
    counts: Annotated[
        bool, option("--counts", "Show exact message counts; makes one more call per queue.")
    ] = False,
) -> None:
    """List queues with their counts and rates.

    They are at most some ten seconds old.
    """
    if counts:
        queues = map(to_row, cli.client.queues(prefix))
        cli.out.rows((_counted(cli, row) for row in queues), COUNTS)
    else:
        cli.out.rows(map(to_row, cli.client.queues(prefix, measured=True)), QUEUES)


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
    """Show a queue: problems, counts and settings."""
    handle = cli.client.queue(name)
    definition, stats = to_row(handle.config()), to_row(handle.stats())
    measurement = measurement_of(cli, "queues.list_queues", name)
    consumers = rows_if_allowed(lambda: map(to_row, handle.consumers()))
    reasons: list[Row] = []
    if stats["dead_lettered"]:
        reasons = rows_if_allowed(lambda: map(to_row, handle.death_reasons()))
    describe(
        cli,
        {**definition, "stats": stats, "measurement": measurement, "consumers": consumers},
        queue_problems(definition, stats, measurement, reasons),
        Section("messages", [stats], MESSAGE_COUNTS),
        Section("per second", [measurement] if measurement else [], RATES),
        Section(
            "seconds to acknowledgement", [measurement] if measurement else [], ACKNOWLEDGE_TIMES
        ),
        Section("consumers", consumers, CONSUMERS),
        Section("dead letters by reason", reasons, REASONS),
        Section("since it was created", [stats], TOTALS),
        settings_section(definition),
    )


@verb(
    queue,
    "consumers",
    examples=["millstream queue consumers orders"],
)
def list_consumers(cli: Terminal, name: QueueName) -> None:
    """List the consumers of a queue.

    Those that received or waited in the last five minutes.
    """
    cli.out.rows(map(to_row, cli.client.queue(name).consumers()), CONSUMERS)


@verb(
    queue,
    "purge",
    examples=["millstream queue purge mails --yes"],
)
def purge(cli: Terminal, name: QueueName, yes: Yes = False) -> None:
    """Delete all messages of a queue.

    Includes those in flight. Dead letters are kept.
    """
    stats = cli.client.queue(name).stats()
    waiting = stats.ready + stats.delayed + stats.in_flight + stats.parked
    confirm(cli, f"{waiting} messages of queue {name} will be permanently deleted.", name, yes=yes)
    purged = cli.client.queue(name).purge()
    cli.out.done(f"Purged {purged} messages of queue {name}.", {"purged": purged})


@delete_verb(QUEUE, QueueNames, "millstream queue rm retries mails orders --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete queues and their messages."""
    stats = cli.client.queue(name).stats()
    messages = stats.ready + stats.delayed + stats.in_flight + stats.parked + stats.dead_lettered
    return f"Queue {name} and its {messages} messages will be permanently deleted."
