"""Requirements of Spark on this machine, and a check that is repeated until they are met."""

import asyncio
import importlib
import logging
import time
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

from spark_worker.runtime.java import JavaMissing, find_java

logger = logging.getLogger(__name__)

NO_SPARK = "PySpark is not installed: pip install 'millstream[spark]', or make up in a clone"
PYSPARK_RECHECK_S = 2.0
JAVA_RECHECK_S = 60.0  # it takes the start of a JVM


class SparkRequirement:
    """Check whether Spark can run here; `awaited`: it may become possible while this runs."""

    def __init__(self, *, awaited: bool = False) -> None:
        self.is_met = not awaited
        self._next_check = 0.0
        self._reason = ""

    async def check(self) -> bool:
        """Return whether Spark can run; look again from time to time until it can."""
        if not self.is_met and time.monotonic() >= self._next_check:
            importlib.invalidate_caches()
            reason = await asyncio.to_thread(missing_requirement)
            pause_s = PYSPARK_RECHECK_S if reason == NO_SPARK else JAVA_RECHECK_S
            self._next_check = time.monotonic() + pause_s
            self._note(reason)
        return self.is_met

    def _note(self, reason: str | None) -> None:
        """Log each reason once, and that Spark is there."""
        self.is_met = reason is None
        if reason is None:
            logger.info("spark_available")
        elif reason != self._reason:
            logger.warning("spark_unavailable", extra={"reason": reason})
        self._reason = reason or ""


def missing_requirement() -> str | None:
    """Return the reason why Spark cannot run on this machine; None where it can."""
    if not has_pyspark():
        return NO_SPARK
    try:
        find_java()
    except JavaMissing as missing:
        return str(missing)
    return None


def has_pyspark() -> bool:
    """Return whether PySpark is installed, without loading it."""
    return find_spec("pyspark") is not None and _installer() != ""


def _installer() -> str | None:
    """Return the name of what installed PySpark; empty before it has finished.

    None without a package: Spark's own folder on the path.
    """
    try:
        return distribution("pyspark").read_text("INSTALLER") or ""
    except PackageNotFoundError:
        return None
