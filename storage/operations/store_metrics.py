"""What this process knows of its exchanges with the stores, for metrics."""

from collections.abc import Mapping

from storage.domain.histogram import LatencyBuffer
from storage.postgres.database import Database
from storage.redis.transport.pipeline import Pipeline


class StoreMetrics:
    """Durations and errors since somebody took them, and how busy the connections are now."""

    def __init__(self, pipeline: Pipeline, database: Database) -> None:
        self.redis: Mapping[str, LatencyBuffer] = pipeline.timings
        self.redis_errors: dict[str, int] = pipeline.errors
        self.postgres: Mapping[str, LatencyBuffer] = database.timings
        self._database = database

    def postgres_in_use(self) -> int:
        """Connections that a transaction has."""
        return self._database.in_use

    def postgres_waiting(self) -> int:
        """Transactions that have no connection yet."""
        return max(0, self._database.open_transactions - self._database.in_use)
