"""Logging: JSON lines on standard error, or coloured text if that is a terminal.

Logs never contain a body or a secret.
"""

import logging
import sys
from typing import Any

import structlog
from structlog.typing import Processor

_VERBOSE_LIBRARIES = (
    "alembic",  # logs each object that it inspects
    "asyncio",
    "boto3",
    "botocore",
    "httpcore",
    "httpx",
    "opentelemetry",
    "psycopg",
    "sqlalchemy",
    "urllib3",
    "uvicorn.error",
    "websockets",
)
"""Verbose libraries, which log URLs with their queries, headers and frames. Only their warnings are logged."""

_SHARED: tuple[Processor, ...] = (
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
    structlog.processors.format_exc_info,
)


def configure_logs(level: str) -> None:
    """Send this process's logs, and those of its libraries, to standard error as JSON lines."""
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=(structlog.stdlib.ExtraAdder(), *_SHARED), processors=_rendering()
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error"):
        _propagate(logging.getLogger(name))
    for name in _VERBOSE_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    # Requests are counted, not logged; and uvicorn formats each line if any handler might log it.
    access = logging.getLogger("uvicorn.access")
    access.handlers, access.propagate = [], False


def _propagate(logger: logging.Logger) -> None:
    logger.handlers, logger.propagate = [], True


def _rendering() -> list[Processor]:
    if sys.stderr.isatty():
        return [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.dev.ConsoleRenderer(),
        ]
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.JSONRenderer(),
    ]


def get_logger(name: str) -> Any:
    """Return a logger of events with fields: `log.warning("request_failed", status=503)`."""
    return structlog.get_logger(name)
