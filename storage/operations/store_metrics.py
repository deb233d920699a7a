"""Metrics of this process's calls to the stores."""

from collections.abc import Mapping

from storage.domain.histogram import LatencyBuffer
from storage.postgres.database import Database
from storage.redis.transport.pipeline import Pipeline


class StoreMetrics:
    """Durations and errors since they were last collected, and the connections in use now."""

    def __init__(self, pipeline: Pipeline, database: Database) -> None:
        self.redis: Mapping[str, LatencyBuffer] = pipeline.timings
        self.redis_errors: dict[str, int] = pipeline.errors
        self.postgres: Mapping[str, LatencyBuffer] = database.timings
        self._database = database

    def postgres_in_use(self) -> int:
        """Return the number of connections in use by transactions."""
        return self._database.in_use

    def postgres_waiting(self) -> int:
        """Return the number of transactions that wait for a connection."""
        return max(0, self._database.open_transactions - self._database.in_use)
