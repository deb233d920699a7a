"""Bulk sending of items as they are read, with progress."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from api.cli.errors import CliError, ExitCode
from api.cli.grammar.common_options import OutputFormat
from api.cli.io.rows import InvalidInputLine
from api.cli.io.stdin import StdinLines, lines_from_arguments, read_stdin
from api.cli.shell.error_messages import cli_error_from
from api.cli.shell.output import Row, encode_pretty, to_row
from api.cli.shell.progress import ProgressDisplay, progress
from api.cli.shell.terminal import LONG_S, Terminal
from millstream_client import (
    Appended,
    Millstream,
    MillstreamError,
    PartlyRefused,
    Queue,
    Sent,
    Stream,
)

Parse = Callable[[bytes], Any]
T = TypeVar("T", Queue, Stream)
SendMany = Callable[[list[Any]], Sequence[Any]]

KIB = 1 << 10
STDIN = "-"


def open_input(
    cli: Terminal, target_of: Callable[[Millstream], T], arguments: list[str] | None, *, whole: bool
) -> tuple[T, StdinLines]:
    """Return the target, and the lines of the arguments or, without them, of standard input.

    Raises if the target does not exist, before anything is read.
    """
    target = target_of(cli.client)
    if arguments and arguments != [STDIN]:
        return target, lines_from_arguments(arguments)
    target.config()
    return target_of(cli.connect(LONG_S)), read_stdin(whole=whole)


class BulkSender:
    """Sends lines, batch by batch, and counts the accepted ones."""

    def __init__(self, cli: Terminal, parse: Parse, send_many: SendMany) -> None:
        self._cli = cli
        self._parse = parse
        self._send_many = send_many
        self._lines = 0
        self._read = 0
        self.done = 0
        self._rows: list[Row] = []

    def send(self, lines: StdinLines, sentence: str) -> None:
        """Send all lines, and print `sentence` with their number.

        Raises CliError, PARTIAL when some were accepted and others were not.
        """
        with progress(self._cli, "sent, KiB:" if lines.size else "sent:") as shown:
            for batch in lines.batches:
                self._send(batch)
                self._show(shown, batch, lines.size)
        if self._cli.out.form is OutputFormat.JSON:
            self._cli.out.line(encode_pretty(self._rows))
        self._cli.out.done(sentence.format(self.done))

    def _send(self, batch: list[bytes]) -> None:
        try:
            for items in self._parsed(batch):
                self._arrived(self._send_many(items))
        except PartlyRefused as refused:
            self._arrived(
                [result for result in refused.results if isinstance(result, Sent | Appended)]
            )
            raise CliError(f"{self.done} were accepted; {refused}", ExitCode.PARTIAL) from None
        except MillstreamError as error:
            raise self._stopped(cli_error_from(error)) from None

    def _parsed(self, batch: list[bytes]) -> Iterable[list[Any]]:
        """Yield the items of a batch; those before an invalid line are sent before its error."""
        items = []
        for line in batch:
            self._lines += 1
            try:
                items.append(self._parse(line))
            except InvalidInputLine as fault:
                if items:
                    yield items
                error = CliError(f"line {self._lines}: {fault}", ExitCode.USAGE)
                raise self._stopped(error) from None
        yield items

    def _stopped(self, trouble: CliError) -> CliError:
        if not self.done:
            return trouble
        return CliError(f"{self.done} were accepted, then: {trouble}", ExitCode.PARTIAL)

    def _arrived(self, results: Sequence[Any]) -> None:
        self.done += len(results)
        if self._cli.out.form is OutputFormat.NDJSON:
            for result in results:
                self._cli.out.show(to_row(result))
        elif self._cli.out.form is OutputFormat.JSON:
            self._rows += map(to_row, results)

    def _show(self, shown: ProgressDisplay, batch: list[bytes], size: int | None) -> None:
        self._read += sum(map(len, batch)) + len(batch)
        if size:
            shown.to(min(self._read, size) // KIB, size // KIB)
        else:
            shown.to(self.done)
