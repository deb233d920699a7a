"""Errors of the command line: one line and an exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes, which scripts may rely on."""

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
    """Expected error. The message is everything that the person at the terminal reads."""

    def __init__(self, line: str, code: ExitCode = ExitCode.ERROR) -> None:
        self.code = code
        super().__init__(line)


class Terminated(BaseException):
    """SIGTERM, raised where it arrived, so that resources are released on the way out."""


class PipeClosed(BaseException):
    """The reader of our output has closed the pipe."""
