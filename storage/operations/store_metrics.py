"""Metrics of this process's calls to the stores."""

from collections.abc import Mapping

from storage.domain.histogram import LatencyBuffer
from storage.postgres.database import Database
from storage.postgres.listener import Listener


class StoreMetrics:
    """Durations and errors since they were last collected, and the connections in use now."""

    def __init__(
        self,
        database: Database,
        redis: Mapping[str, LatencyBuffer],
        redis_errors: dict[str, int],
        confirmations: LatencyBuffer,
        listener: Listener,
    ) -> None:
        self._listener = listener
        self.redis = redis
        self.redis_errors = redis_errors
        self.confirmations = confirmations
        self.postgres: Mapping[str, LatencyBuffer] = database.timings
        self._database = database

    def is_postgres_away(self) -> bool:
        """Return whether Postgres is away, and what is cached serves in its place."""
        return self._listener.is_vouched

    def postgres_in_use(self) -> int:
        """Return the number of connections in use by transactions."""
        return self._database.in_use

    def postgres_waiting(self) -> int:
        """Return the number of transactions that wait for a connection."""
        return max(0, self._database.open_transactions - self._database.in_use)
