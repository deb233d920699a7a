"""Standard input as something to send: a line each, as they come, or all of it."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK = 1 << 16  # of a file at once: some thousand lines, after which it is told how far it is


def stdin() -> BinaryIO:
    """Standard input, as bytes."""
    return sys.stdin.buffer


@dataclass(frozen=True)
class Lines:
    """What is to be sent, in batches of lines; and the bytes of it all, where somebody knows."""

    batches: Iterable[list[bytes]]
    size: int | None = None


def said(words: list[str]) -> Lines:
    """Words of the command line."""
    return Lines([[word.encode() for word in words]])


def read_stdin(*, whole: bool) -> Lines:
    """Standard input: its lines, or all of it as one."""
    file = stdin()
    return Lines([[file.read()]]) if whole else Lines(line_batches(file), size_of(file))


def size_of(file: BinaryIO) -> int | None:
    """The bytes of a file; None of a pipe, which nobody knows."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):  # it is none of the system's
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def line_batches(file: BinaryIO) -> Iterator[list[bytes]]:
    """The lines without their ends, those together that were there at once: a file comes in large batches, and what
    somebody types line by line. An empty line is an empty line; a last one needs no end."""
    rest = b""
    read = getattr(file, "read1", file.read)
    while chunk := read(CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]
