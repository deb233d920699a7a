"""Warnings of the SDK, for example on reconnecting: lines on standard error.

A repeated warning is printed once.
"""

import logging
from collections.abc import Callable

LOGGER = "millstream_client"


class SdkWarningHandler(logging.Handler):
    """Logging handler that prints each warning unless it repeats the last one."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._print_line = print_line
        self._last = ""

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line != self._last:
            self._last = line
            self._print_line(f"millstream: {line}")


def listen(print_line: Callable[[str], None]) -> Callable[[], None]:
    """Print warnings from now on; return a function that ends that."""
    logger, handler = logging.getLogger(LOGGER), SdkWarningHandler(print_line)
    logger.addHandler(handler)

    def end() -> None:
        logger.removeHandler(handler)

    return end
