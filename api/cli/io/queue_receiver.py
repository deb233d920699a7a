"""Receiver for a pipe: acknowledges a message once written, releases it if that fails."""

from collections.abc import Callable
from contextlib import suppress

from api.cli.errors import Terminated
from api.cli.grammar.common_options import OutputFormat
from api.cli.io.rows import delivery_row, payload_text
from api.cli.shell.interrupts import check_reader
from api.cli.shell.output import Column, Row, encode_pretty, show_value, table
from api.cli.shell.terminal import Terminal
from millstream_client import ItemRefused, Message, MillstreamError, Queue

WAIT_S = (
    2.0  # wait of one of several receives; between them the output pipe is checked for a reader
)
TOGETHER_MAX = 100

DELIVERIES = table(
    "receipt_handle", "receive_count", "visible_at", "group", Column("text", "body", show_value)
)


class Receiver:
    """Receives messages of one queue and prints them.

    With `keep` they stay in flight, and the table shows their receipt handles.
    """

    def __init__(
        self, cli: Terminal, source: Queue, visibility_s: float | None, *, keep: bool
    ) -> None:
        self._cli = cli
        self._source = source
        self._visibility_s = visibility_s
        self._keep = keep

    def follow(self, together: int) -> None:
        """Receive messages indefinitely."""
        while True:
            check_reader()
            self._write_and_acknowledge(self._receive(together, WAIT_S), self._write_line)

    def take(self, messages_max: int, wait_s: float) -> None:
        """Receive up to `messages_max` messages; `wait_s` applies to the first receive."""
        if self._cli.out.form is OutputFormat.JSON or (self._keep and self._cli.out.for_people):
            self._take_together(messages_max, wait_s)
            return
        while messages_max > 0 and (batch := self._receive(messages_max, wait_s)):
            self._write_and_acknowledge(batch, self._write_line)
            messages_max -= len(batch)
            wait_s = 0.0

    def _take_together(self, messages_max: int, wait_s: float) -> None:
        """Receive all messages before printing them as one value, or one table."""
        messages: list[Message] = []
        try:
            while len(messages) < messages_max and (
                batch := self._receive(messages_max - len(messages), wait_s)
            ):
                messages += batch
                wait_s = 0.0
            self._write_all(messages)
        except BaseException:
            self._release(messages)
            raise
        self._acknowledge(messages)

    def _receive(self, messages_max: int, wait_s: float) -> list[Message]:
        return self._source.receive(
            min(messages_max, TOGETHER_MAX),
            wait_seconds=wait_s,
            visibility_timeout_seconds=self._visibility_s,
        )

    def _write_and_acknowledge(
        self, batch: list[Message], write: Callable[[Message], None]
    ) -> None:
        written: list[Message] = []
        try:
            for message in batch:
                write(message)
                written.append(message)
        except BaseException:
            with suppress(MillstreamError):  # otherwise they are redelivered after their timeout
                self._acknowledge(written)
                self._release(batch[len(written) :])
            raise
        try:
            self._acknowledge(written)
        except (KeyboardInterrupt, Terminated):
            with suppress(MillstreamError):
                self._acknowledge(written)  # they were written, whatever was interrupted
            raise

    # ── Writing ──

    def _write_line(self, message: Message) -> None:
        if self._cli.out.for_people:
            self._cli.out.line(message.body)
        else:
            self._cli.out.show(delivery_row(message.delivery))

    def _write_all(self, messages: list[Message]) -> None:
        rows = [delivery_row(message.delivery) for message in messages]
        if self._cli.out.for_people:
            self._cli.out.rows(map(_with_text, rows), DELIVERIES)
        else:
            self._cli.out.line(encode_pretty(rows))

    # ── Settling ──

    def _acknowledge(self, messages: list[Message]) -> None:
        if self._keep or not messages:
            return
        results = self._source.ack(messages)
        late = sum(isinstance(result, ItemRefused) for result in results)
        if late:
            self._cli.print_notice(
                f"{late} messages were printed after their visibility timeout and will be redelivered."
            )

    def _release(self, messages: list[Message]) -> None:
        if messages:
            self._source.release(messages)


def _with_text(row: Row) -> Row:
    return {**row, "text": payload_text(row, "body")}
