"""How the command line says that something went wrong: one line and an exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script may rely on."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    PARTIAL = 5
    INTERRUPTED = 130  # Ctrl-C, as shells count signals: 128 and its number
    PIPE_CLOSED = 141
    TERMINATED = 143


class CliError(Exception):
    """Expected trouble. The message is the whole of what the person at the terminal reads."""

    def __init__(self, line: str, code: ExitCode = ExitCode.ERROR) -> None:
        self.code = code
        super().__init__(line)


class Terminated(BaseException):
    """SIGTERM, raised where it came, so that what is held is given back on the way out."""


class PipeClosed(BaseException):
    """Nobody reads what we write any more."""
