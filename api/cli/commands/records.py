"""`millstream stream`, as far as records go: putting, reading and following them."""

from typing import Annotated, Any

import typer

from api.cli.io.stdin import read_stdin, said
from api.cli.shell.options import ContentType, Headers, Most, StreamName, place
from api.cli.shell.parsing import Place
from api.cli.shell.terminal import FOR_EVER_S, LONG_S, Terminal, noun, verb

records = noun("Records of a stream.")

STDIN = "-"
EARLIEST = Place(end="earliest")

From = Annotated[Any, place("--from", help="earliest, latest, 10m (ago), a time, or an offset.")]
Shard = Annotated[int | None, typer.Option("--shard", help="Only this one.")]
Long = Annotated[bool, typer.Option("--long", "-l", help="Show each with its time, place and key.")]


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
        typer.Argument(help="What to put; - or nothing is standard input, one record per line."),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Lines are data as they are (the default).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Data are JSON values.")] = False,
    as_records: Annotated[
        bool,
        typer.Option("--records", help="Lines are records, as `stream read -o ndjson` has them."),
    ] = False,
    whole: Annotated[bool, typer.Option("--whole", help="Standard input is one record.")] = False,
    key: Annotated[
        str, typer.Option("--key", help="The key of all records: records of a key stay in order.")
    ] = "",
    key_field: Annotated[
        str, typer.Option("--key-field", help="With --json: the field that is the key.")
    ] = "",
    content_type: ContentType = "",
    headers: Headers = None,
) -> None:
    """Append records: data as they are said, or the lines of standard input, as they come."""
    from api.cli.io.bulk_sender import Carrier
    from api.cli.io.rows import key_in, parse_json, record_from
    from millstream_client import NewRecord

    check_one_form(lines, as_json, as_records)

    def record(line: bytes) -> NewRecord:
        if as_records:
            return record_from(line)
        value = parse_json(line) if as_json else line
        own_key = key_in(value, key_field) if key_field else key
        return NewRecord(value, own_key, dict(headers or []), content_type)

    target = cli.client.stream(name)
    if data and data != [STDIN]:
        given = said(data)
    else:
        target.config()  # that it is there, before anything is read
        target = cli.connect(LONG_S).stream(name)
        given = read_stdin(whole=whole)
    Carrier(cli, record, target.put_many).carry(given, f"{{}} put into stream {name}.")


@verb(
    records,
    "read",
    examples=[
        "millstream stream read clicks",
        "millstream stream read clicks --from 10m --long",
        "millstream stream read clicks --shard 0 --from 0 -n 2 -o json",
    ],
)
def read(
    cli: Terminal,
    name: StreamName,
    from_: From = EARLIEST,
    shard: Shard = None,
    most: Most = None,
    long: Long = False,
) -> None:
    """Write what a stream holds, from a place on to its end; reading takes nothing away.

    The records' data are written, each on a line; with -o json or ndjson all there is of them. A gap is told on
    standard error.
    """
    from api.cli.io.stream_reader import Writer, read_on

    cli.client.stream(name).config()  # that it is there
    writer = Writer(cli, long=long)
    source = cli.connect(LONG_S).stream(name)
    writer.all(read_on(source, from_, shard, most, writer.gap))


@verb(
    records,
    "tail",
    examples=[
        "millstream stream tail clicks",
        "millstream stream tail clicks -n 3 --long",
        "timeout 1 millstream stream tail -f clicks || true",
    ],
)
def tail(
    cli: Terminal,
    name: StreamName,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with what comes, until Ctrl-C.")
    ] = False,
    last: Annotated[
        int, typer.Option("-n", "--last", min=0, help="Begin with the last so many records.")
    ] = 10,
    shard: Shard = None,
    long: Long = False,
) -> None:
    """Write the last records of a stream, and with -f those that come, also after the service was away."""
    from api.cli.io.stream_reader import Writer, follow_on, last_records

    writer = Writer(cli, long=long)
    found, offsets = last_records(cli.client.stream(name), last, shard)
    if not follow:
        writer.all(found)
        return
    for record in found:
        writer.one(record)
    follow_on(cli.connect(FOR_EVER_S).stream(name), offsets, shard, writer)


def check_one_form(*forms: bool) -> None:
    """Lines have one form. Raises BadParameter."""
    if sum(forms) > 1:
        raise typer.BadParameter("say one of --lines, --json and --records")
