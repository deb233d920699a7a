"""What the SDK remarks on while it goes on, as when it connects again: a line on standard error, not the same twice."""

import logging
from collections.abc import Callable

LOGGER = "millstream"


class SdkWarningHandler(logging.Handler):
    """Says each remark once, until there is another."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say
        self._last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless it was the last."""
        line = record.getMessage()
        if line != self._last:
            self._last = line
            self._say(f"millstream: {line}")


def listen(say: Callable[[str], None]) -> Callable[[], None]:
    """Have remarks said from now on; gives what ends that."""
    logger, handler = logging.getLogger(LOGGER), SdkWarningHandler(say)
    logger.addHandler(handler)

    def end() -> None:
        logger.removeHandler(handler)

    return end
