"""Live screen: a frame that is drawn again at intervals, and at each key."""

import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO

from api.cli.shell.output import Output
from api.cli.shell.terminal import Terminal

ENTER = b"\x1b[?1049h\x1b[?25l"  # another screen, without a cursor
LEAVE = b"\x1b[?25h\x1b[?1049l"
HOME = b"\x1b[H"
CLEAR_LINE, CLEAR_BELOW = b"\x1b[K", b"\x1b[J"
QUIT = frozenset({"q", "\x04"})  # q, Ctrl-D

Draw = Callable[[Output], None]


def run_live(cli: Terminal, draw: Draw, *, every_s: float, press: Callable[[str], None]) -> None:
    """Draw until q is pressed; other keys are passed to `press`."""
    with _screen(cli), _single_keys():
        while True:
            cli.out.write(_frame(draw))
            key = _key(every_s)
            if key in QUIT:
                return
            press(key)


def lines_max() -> int:
    """Return the number of lines of the terminal."""
    return shutil.get_terminal_size().lines


def _frame(draw: Draw) -> bytes:
    """Return what replaces the screen at once, without a flicker."""
    drawn = BytesIO()
    draw(Output(file=drawn, is_terminal=True))
    lines = drawn.getvalue().splitlines()[: lines_max() - 1]
    return HOME + b"".join(line + CLEAR_LINE + b"\r\n" for line in lines) + CLEAR_BELOW


def _key(timeout_s: float) -> str:
    """Return the key that is pressed within a time; empty if none is."""
    descriptor = sys.stdin.fileno()
    ready, _, _ = select.select([descriptor], [], [], timeout_s)
    return os.read(descriptor, 1).decode(errors="replace") or "q" if ready else ""


@contextmanager
def _screen(cli: Terminal) -> Iterator[None]:
    cli.out.write(ENTER)
    try:
        yield
    finally:
        cli.out.write(LEAVE)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Read keys one by one and without an echo, while the block runs."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
