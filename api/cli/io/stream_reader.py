"""Reading a stream to a pipe: all, the last records, or following it across restarts."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from api.cli.errors import CliError, ExitCode
from api.cli.grammar.common_options import OutputFormat
from api.cli.grammar.parsers import StreamPosition
from api.cli.io.record_selection import matching_offsets
from api.cli.io.rows import record_row
from api.cli.shell.interrupts import exit_on_broken_pipe
from api.cli.shell.output import encode_pretty, strip_control_characters
from api.cli.shell.terminal import Terminal
from millstream_client import Gap, Record, Stream
from millstream_client.gaps import OnGap


class Writer:
    """Prints records: their data alone, or after time, position and key with `long`.

    JSON has all fields.
    """

    def __init__(self, cli: Terminal, *, long: bool) -> None:
        self._cli = cli
        self._long = long

    def all(self, records: Iterable[Record]) -> None:
        """Print a finite list of records."""
        if self._cli.out.form is OutputFormat.JSON:
            self._cli.out.line(encode_pretty([record_row(record) for record in records]))
            return
        for record in records:
            self.one(record)

    def one(self, record: Record) -> None:
        """Print one record immediately."""
        if not self._cli.out.for_people:
            self._cli.out.show(record_row(record))
        elif self._long:
            self._cli.out.line(_line_prefix(record).encode() + record.data)
        else:
            self._cli.out.line(record.data)

    def gap(self, gap: Gap) -> None:
        """Report unreadable offsets on standard error."""
        self._cli.print_notice(
            f"Offsets {gap.first} to {gap.next - 1} of shard {gap.shard} are unavailable: {gap.reason}."
        )


def _line_prefix(record: Record) -> str:
    moment = record.arrival_time.astimezone().isoformat(timespec="milliseconds")
    return f"{moment} {record.shard}:{record.offset} {strip_control_characters(record.key) or '-'} "


def read_on(
    source: Stream,
    position: StreamPosition,
    shard: int | None,
    records_max: int | None,
    on_gap: OnGap,
) -> Iterator[Record]:
    """Read a stream from a position; an offset belongs to a shard."""
    limit = min(records_max or 1000, 1000)
    if shard is None:
        return islice(source.read(position.start, limit=limit, on_gap=on_gap), records_max)
    records = source.read(
        position.start,
        shard=shard,
        offset=position.offset,
        limit=limit,
        on_gap=lambda gap: on_gap(msgspec.structs.replace(gap, shard=shard)),
    )
    return (_of_shard(record, shard) for record in islice(records, records_max))


def shard_of(source: Stream, position: StreamPosition, shard: int | None) -> int | None:
    """Return the shard to read; for an offset without one, the only one. Raises CliError."""
    return _only_shard(source) if position.offset is not None and shard is None else shard


def _only_shard(source: Stream) -> int:
    shards = source.shards()
    if len(shards) != 1:
        raise CliError(
            f"stream {source.name} has {len(shards)} shards: specify the offset's shard with --shard",
            ExitCode.USAGE,
        )
    return shards[0].index


def _of_shard(record: Record, shard: int) -> Record:
    return msgspec.structs.replace(record, shard=shard)


def last_records(
    source: Stream, records_max: int, shard: int | None, match: Any = None
) -> tuple[list[Record], dict[int, int]]:
    """Return the last records by arrival, of one shard or all; with a match, those it takes.

    Also returns the next offset of each open shard.
    """
    records: list[Record] = []
    offsets: dict[int, int] = {}
    for source_shard in source.shards():
        if shard is not None and source_shard.index != shard:
            continue
        page = source.read_shard_page(source_shard.index, tail=max(records_max, 1))
        records += [_of_shard(record, source_shard.index) for record in page.records]
        if source_shard.open_ or shard is not None:
            offsets[source_shard.index] = page.next_offset
    if shard is not None and not offsets:
        raise CliError(f"stream {source.name} has no shard {shard}", ExitCode.NOT_FOUND)
    records.sort(key=lambda record: (record.arrival_time, record.shard, record.offset))
    last = records[-records_max:] if records_max else []
    return (last if match is None else _matching(source, last, match)), offsets


def _matching(source: Stream, records: list[Record], match: Any) -> list[Record]:
    """Return the records that a match takes; the service says which."""
    first: dict[int, int] = {}
    for record in records:
        first.setdefault(record.shard, record.offset)
    offsets = [matching_offsets(source, match, shard, at) for shard, at in first.items()]
    chosen = set[tuple[int, int]]().union(*offsets)
    return [record for record in records if (record.shard, record.offset) in chosen]


def follow_on(
    source: Stream, offsets: dict[int, int], shard: int | None, match: Any, writer: Writer
) -> None:
    """Print the records from these offsets on, indefinitely."""
    selected = None if match is None else {"match": match}
    subscription = source.subscribe(
        offsets=offsets, shard=shard, filter=selected, on_gap=writer.gap
    )
    with exit_on_broken_pipe(), subscription as records:
        for record in records:
            writer.one(record)
