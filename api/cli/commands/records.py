"""`millstream stream`: appending, reading and following records."""

from typing import Annotated, Any

import typer

from api.cli.grammar.parsers import StreamPosition
from api.cli.io.match_options import FilterText, Subjects, Where, match_of
from api.cli.shell.options import ContentType, Headers, Limit, StreamName, option, position_option
from api.cli.shell.terminal import FOR_EVER_S, LONG_S, Terminal, noun, verb

records = noun()

EARLIEST = StreamPosition(end="earliest")

From = Annotated[
    Any, position_option("--from", help="earliest, latest, 10m (ago), a time, or an offset.")
]
Shard = Annotated[int | None, option("--shard", "Only this shard.")]
Long = Annotated[
    bool, typer.Option("--long", "-l", help="Show each record with its time, position and key.")
]


@verb(
    records,
    "put",
    examples=[
        "millstream stream put clicks 'hello' --key ann",
        "seq 1 5 | millstream stream put clicks",
        'echo \'{"user":"ann","page":"/"}\' | millstream stream put clicks --json --key-field user',
        "millstream stream read clicks -o ndjson | millstream stream put copies --records",
    ],
)
def put(
    cli: Terminal,
    name: StreamName,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="Record to append; - or nothing reads standard input, one record per line."
        ),
    ] = None,
    lines: Annotated[bool, option("--lines", "Treat lines as plain data (default).")] = False,
    as_json: Annotated[bool, option("--json", "Treat data as JSON values.")] = False,
    as_records: Annotated[
        bool,
        option("--records", "Treat lines as records in the format of `stream read -o ndjson`."),
    ] = False,
    whole: Annotated[bool, option("--whole", "Append standard input as one record.")] = False,
    key: Annotated[
        str, option("--key", "Key of all records; records with the same key stay in order.", "KEY")
    ] = "",
    key_field: Annotated[
        str, option("--key-field", "With --json: field that contains the key.", "FIELD")
    ] = "",
    content_type: ContentType = "",
    headers: Headers = None,
) -> None:
    """Append records.

    They are given as arguments, or as lines of standard input.
    """
    from api.cli.io.bulk_sender import BulkSender, open_input
    from api.cli.io.rows import key_in, parse_json, record_from
    from millstream_client import NewRecord

    check_one_form(lines, as_json, as_records)

    def record(line: bytes) -> NewRecord:
        if as_records:
            return record_from(line)
        value = parse_json(line) if as_json else line
        own_key = key_in(value, key_field) if key_field else key
        return NewRecord(value, own_key, dict(headers or []), content_type)

    target, given = open_input(cli, lambda client: client.stream(name), data, whole=whole)
    BulkSender(cli, record, target.put_many).send(given, f"{{}} appended to stream {name}.")


@verb(
    records,
    "read",
    examples=[
        "millstream stream read clicks",
        "millstream stream read clicks --from 10m --long",
        "millstream stream read clicks --shard 0 --from 0 -n 2 -o json",
        "millstream stream read clicks --where 'body.total > 100'",
    ],
)
def read(
    cli: Terminal,
    name: StreamName,
    from_: From = EARLIEST,
    shard: Shard = None,
    subjects: Subjects = None,
    filter_: FilterText = None,
    where: Where = None,
    limit: Limit = None,
    long: Long = False,
) -> None:
    """Print the records from a position to the end.

    --subject, --filter and --where select some of them, as a route of a topic does. Prints the data of one record per line; -o json or ndjson prints all fields. Gaps are reported on standard error. Reading
    does not remove records.
    """
    from api.cli.io.record_selection import matching_records
    from api.cli.io.stream_reader import Writer, read_on, shard_of

    match = match_of(subjects, filter_, where)
    cli.client.stream(name).config()  # raises if it does not exist
    writer = Writer(cli, long=long)
    source = cli.connect(LONG_S).stream(name)
    shard = shard_of(source, from_, shard)
    if match is None:
        writer.all(read_on(source, from_, shard, limit, writer.gap))
    else:
        selected = matching_records(
            source, match, from_, shard=shard, records_max=limit, on_gap=writer.gap
        )
        writer.all(selected)


@verb(
    records,
    "tail",
    examples=[
        "millstream stream tail clicks",
        "millstream stream tail clicks -n 3 --long",
        "timeout 1 millstream stream tail -f clicks || true",
        "timeout 1 millstream stream tail -f topic:orders --subject 'order.*' || true",
    ],
)
def tail(
    cli: Terminal,
    name: StreamName,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue receiving until Ctrl-C.")
    ] = False,
    last: Annotated[
        int, typer.Option("-n", "--last", min=0, help="Number of existing records to print first.")
    ] = 10,
    shard: Shard = None,
    subjects: Subjects = None,
    filter_: FilterText = None,
    where: Where = None,
    long: Long = False,
) -> None:
    """Print the last records of a stream.

    --subject, --filter and --where select some of these records, and of the new ones, as a route of a topic does. -f also prints new records as they arrive, and reconnects after restarts.
    """
    from api.cli.io.stream_reader import Writer, follow_on, last_records

    writer, match = Writer(cli, long=long), match_of(subjects, filter_, where)
    tail_records, offsets = last_records(cli.client.stream(name), last, shard, match)
    if not follow:
        writer.all(tail_records)
        return
    for record in tail_records:
        writer.one(record)
    follow_on(cli.connect(FOR_EVER_S).stream(name), offsets, shard, match, writer)


def check_one_form(*forms: bool) -> None:
    """Raise BadParameter unless lines have exactly one format."""
    if sum(forms) > 1:
        raise typer.BadParameter("specify only one of --lines, --json and --records")
