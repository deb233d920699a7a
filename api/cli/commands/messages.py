"""`millstream queue`: sending, receiving, settling and browsing messages."""

from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.io.browsed_rows import BODY, with_text
from api.cli.io.message_filter import (
    BodyFilter,
    GroupFilter,
    HeaderFilter,
    SentSince,
    SentUntil,
    TextFilter,
    filter_query,
)
from api.cli.shell.options import ContentType, Headers, Limit, QueueName, duration, option
from api.cli.shell.output import Row, table
from api.cli.shell.terminal import FOR_EVER_S, Terminal, noun, verb

messages = noun()

MESSAGES = table("id", "state", "sent_at", "due_at", "receive_count", "group", BODY)
RESULTS = table("receipt_handle", "status", "error")


class OutcomeOption(StrEnum):
    """Outcome of a delivery."""

    ACK = "ack"
    NACK = "nack"
    RELEASE = "release"
    REJECT = "reject"
    EXTEND = "extend"


class MessageStateOption(StrEnum):
    """Message state."""

    READY = "ready"
    DELAYED = "delayed"
    IN_FLIGHT = "in_flight"
    PARKED = "parked"


StateFilter = Annotated[
    MessageStateOption | None, option("--state", "Only messages in this state.")
]


# ── Sending ──


@verb(
    messages,
    "send",
    examples=[
        "millstream queue send orders 'hello'",
        'millstream queue send mails \'{"to":"ann"}\' --json --group ann',
        "seq 1 3 | millstream queue send orders -",
        "date | millstream queue send orders - --whole",
    ],
)
def send(
    cli: Terminal,
    name: QueueName,
    bodies: Annotated[
        list[str],
        typer.Argument(help="Message to send; - reads standard input, one message per line."),
    ],
    whole: Annotated[bool, option("--whole", "Send standard input as one message.")] = False,
    as_json: Annotated[bool, option("--json", "Treat bodies as JSON values.")] = False,
    as_messages: Annotated[
        bool,
        option("--messages", "Treat lines as messages in the format of `queue peek -o ndjson`."),
    ] = False,
    group: Annotated[str, option("--group", "The message group.", "GROUP")] = "",
    dedup_id: Annotated[
        str,
        option(
            "--dedup-id",
            "Deduplication id: repeats within five minutes are ignored (FIFO queues).",
            "ID",
        ),
    ] = "",
    delay: Annotated[
        Any, duration("--delay", help="Delay before the message can be received.")
    ] = None,
    ttl: Annotated[Any, duration("--ttl", help="Time to live.")] = None,
    priority: Annotated[
        int, option("--priority", "Priority, 0 to 9; higher priorities are delivered first.")
    ] = 0,
    content_type: ContentType = "",
    headers: Headers = None,
) -> None:
    """Send messages.

    They are given as arguments, or as lines of standard input.
    """
    from api.cli.io.bulk_sender import BulkSender, open_input
    from api.cli.io.rows import message_from, parse_json
    from millstream_client import NewMessage

    def message(body: bytes) -> NewMessage:
        if as_messages:
            return message_from(body)
        value = parse_json(body) if as_json else body
        return NewMessage(
            value, dict(headers or []), content_type, group, dedup_id, delay, ttl, priority
        )

    target, lines = open_input(cli, lambda client: client.queue(name), bodies, whole=whole)
    BulkSender(cli, message, target.send_many).send(lines, f"{{}} sent to queue {name}.")


# ── Receiving ──


@verb(
    messages,
    "receive",
    examples=[
        "millstream queue receive orders",
        "millstream queue receive orders -n 10 --wait 1s -o json",
        "millstream queue receive orders --keep --visibility 1s -o json | jq -r '.[].receipt_handle'",
    ],
)
def receive(
    cli: Terminal,
    name: QueueName,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Maximum number.")] = 1,
    wait: Annotated[Any, duration("--wait", help="Time to wait for the first message.")] = 0.0,
    visibility: Annotated[
        Any,
        duration("--visibility", help="Visibility timeout."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue receiving until Ctrl-C.")
    ] = False,
    batch: Annotated[int, typer.Option("--batch", min=1, help="With --follow: batch size.")] = 1,
    keep: Annotated[
        bool, option("--keep", "Do not acknowledge; the messages stay in flight.")
    ] = False,
) -> None:
    """Receive messages and acknowledge them.

    Each is acknowledged after it was printed. Prints one body per line; -o json or ndjson prints all fields. Messages that were received but cannot be printed, because
    the pipe was closed or Ctrl-C was pressed, are released immediately.
    """
    from api.cli.io.queue_receiver import Receiver

    source = cli.client.queue(name)
    if follow:
        source.config()
        source = cli.connect(FOR_EVER_S).queue(name)
    receiver = Receiver(cli, source, visibility, keep=keep)
    if follow:
        receiver.follow(batch)
    else:
        receiver.take(limit, wait)


# ── Settling ──


@verb(
    messages,
    "settle",
    examples=[
        "millstream queue send orders 'try me'",
        "HANDLE=$(millstream queue receive orders --keep -o json | jq -r '.[0].receipt_handle')",
        "millstream queue settle orders $HANDLE --as nack --delay 0s --reason 'try again'",
    ],
)
def settle(
    cli: Terminal,
    name: QueueName,
    handles: Annotated[list[str], typer.Argument(help="Receipt handles.")],
    verdict: Annotated[
        OutcomeOption, option("--as", "Outcome of the delivery.")
    ] = OutcomeOption.ACK,
    delay: Annotated[Any, duration("--delay", help="For nack: delay before redelivery.")] = None,
    visibility: Annotated[
        Any, duration("--visibility", help="For extend: new visibility timeout.")
    ] = None,
    reason: Annotated[str, option("--reason", "For nack and reject: reason.")] = "",
    details: Annotated[
        str, option("--details", "For nack and reject: details, such as a stack trace.")
    ] = "",
) -> None:
    """Settle deliveries by their receipt handles."""
    from millstream_client.messages import Settlement, Verdict

    given = [
        Settlement(handle, Verdict(verdict), delay, visibility, reason, details)
        for handle in handles
    ]
    _report(cli, handles, cli.client.queue(name).settle(given))


@verb(messages, "ack")
def ack(
    cli: Terminal,
    name: QueueName,
    handles: Annotated[list[str], typer.Argument(help="Receipt handles.")],
) -> None:
    """Acknowledge messages, which deletes them.

    They are named by their receipt handles.
    """
    from millstream_client.messages import Settlement, Verdict

    given = [Settlement(handle, Verdict.ACK) for handle in handles]
    _report(cli, handles, cli.client.queue(name).settle(given))


def _report(cli: Terminal, handles: list[str], results: list[Any]) -> None:
    from millstream_client import ItemRefused

    refused = [one for one in results if isinstance(one, ItemRefused)]
    if not cli.out.for_people:
        cli.out.rows(map(_result, handles, results), RESULTS)
    elif len(refused) < len(results):
        cli.out.done(f"Settled {len(results) - len(refused)} deliveries.")
    if refused:
        code = ExitCode.PARTIAL if len(refused) < len(results) else ExitCode.ERROR
        raise CliError(f"{len(refused)} of {len(results)} were rejected: {refused[0]}", code)


def _result(handle: str, result: Any) -> Row:
    from millstream_client import ItemRefused

    if isinstance(result, ItemRefused):
        return {"receipt_handle": handle, "status": "refused", "error": result.code}
    return {"receipt_handle": handle, "status": "settled", "error": None}


# ── Looking ──


@verb(
    messages,
    "peek",
    examples=[
        "millstream queue peek orders",
        "millstream queue peek mails --state delayed -o ndjson",
        "millstream queue peek orders --header source:web --where /total=12.5 --since 1h",
    ],
)
def peek(
    cli: Terminal,
    name: QueueName,
    state: StateFilter = None,
    group: GroupFilter = None,
    header: HeaderFilter = None,
    where: BodyFilter = None,
    text: TextFilter = None,
    since: SentSince = None,
    until: SentUntil = None,
    limit: Limit = 20,
) -> None:
    """Browse messages without receiving them."""
    conditions = filter_query(
        group=group, header=header, body=where, text=text, from_=since, to=until
    )
    browsed = cli.pages("queues.browse_messages", name, state=state, **conditions)
    cli.out.rows(with_text(cli, islice(browsed, limit)), MESSAGES)
