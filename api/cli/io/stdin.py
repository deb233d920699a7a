"""Standard input: line by line as it arrives, or as a whole, also in place of a file."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from api.cli.errors import CliError

CHUNK = 1 << 16  # size of one read of a file: some thousand lines, after which progress is reported


def stdin() -> BinaryIO:
    """Return standard input, as bytes."""
    return sys.stdin.buffer


def read_text_file(path: Path, what: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises CliError, naming `what`."""
    try:
        return stdin().read().decode() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"cannot read the {what} from {path}: {error}") from None


@dataclass(frozen=True)
class StdinLines:
    """Batches of lines to send; and their total size in bytes, if known."""

    batches: Iterable[list[bytes]]
    size: int | None = None


def lines_from_arguments(arguments: list[str]) -> StdinLines:
    """Return arguments of the command line as lines."""
    return StdinLines([[argument.encode() for argument in arguments]])


def read_stdin(*, whole: bool) -> StdinLines:
    """Read standard input: its lines, or all of it as one."""
    file = stdin()
    return StdinLines([[file.read()]]) if whole else StdinLines(line_batches(file), size_of(file))


def size_of(file: BinaryIO) -> int | None:
    """Return the size of a file in bytes; None for a pipe, whose size is unknown."""
    try:
        status = os.fstat(file.fileno())
    except (OSError, ValueError):  # not a file of the system
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def line_batches(file: BinaryIO) -> Iterator[list[bytes]]:
    """Yield batches of lines without their ends, as they become available.

    A file is read in large batches, and typed input line by line. An empty line is an empty line; a last one needs no end.
    """
    rest = b""
    read = getattr(file, "read1", file.read)
    while chunk := read(CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]
