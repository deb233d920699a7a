"""Search for queues, streams and topics by part of the name or by tags."""

from collections.abc import Mapping, Sequence

from storage.domain import limits
from storage.domain.names import TOPIC_PREFIX
from storage.domain.queues.policies import QueueCaps
from storage.domain.queues.queue import Queue
from storage.domain.streams.stream import Stream
from storage.postgres.database import Database
from storage.postgres.repositories.definitions import QueueRows, StreamRows
from storage.postgres.repositories.routes import RouteRows

_NO_TAGS: Mapping[str, str] = {}


class CatalogSearch:
    """Searches of queues, streams and topics, each one statement, fresh from Postgres.

    All raise StorageUnavailable.
    """

    def __init__(self, database: Database) -> None:
        self._queues = QueueRows(database)
        self._streams = StreamRows(database)
        self._routes = RouteRows(database)

    async def queue_names(
        self, namespace: str, part: str = "", tags: Mapping[str, str] = _NO_TAGS
    ) -> list[str]:
        """Return names of queues that contain `part` and have all those tags, by name.

        At most LISTED_NAMES_MAX.
        """
        return await self._queues.names(namespace, part, limits.LISTED_NAMES_MAX, tags)

    async def stream_names(
        self, namespace: str, part: str = "", tags: Mapping[str, str] = _NO_TAGS
    ) -> list[str]:
        """Return names of streams that contain `part` and have all those tags, by name.

        At most LISTED_NAMES_MAX.
        """
        return await self._streams.names(namespace, part, limits.LISTED_NAMES_MAX, tags)

    async def topic_names(
        self, namespace: str, part: str = "", tags: Mapping[str, str] = _NO_TAGS
    ) -> list[str]:
        """Return names of topics that contain `part` and have all those tags, by name.

        Streams with routes follow, as `stream:<name>`, if no tag is given. At most LISTED_NAMES_MAX.
        """
        names_max = limits.LISTED_NAMES_MAX
        names = await self._streams.names(namespace, part, names_max, tags, prefix=TOPIC_PREFIX)
        topics = [name.removeprefix(TOPIC_PREFIX) for name in names]
        if not tags:
            sources = [stream.topic.name for stream in await self._routes.sources(namespace)]
            topics += [name for name in sources if part in name]
        return topics[:names_max]

    async def queues(self, namespace: str, names: Sequence[str]) -> dict[str, Queue]:
        """Return those of the named queues that exist; at most PAGE_ITEMS_MAX names."""
        definitions = await self._queues.with_names(namespace, names[: limits.PAGE_ITEMS_MAX])
        return {queue.name.name: queue for queue in definitions}

    async def dead_letter_queues(self, namespace: str, names: Sequence[str]) -> frozenset[str]:
        """Return those of the names that other queues have as their dead-letter queue."""
        return await self._queues.dead_letter_targets(namespace, names) if names else frozenset()

    async def queue_caps(self, namespace: str) -> dict[str, QueueCaps]:
        """Return the caps of queues that reject messages beyond them.

        At most LISTED_NAMES_MAX queues.
        """
        return await self._queues.caps(namespace)

    async def streams(self, namespace: str, names: Sequence[str]) -> dict[str, Stream]:
        """Return those of the named streams that exist; at most PAGE_ITEMS_MAX names."""
        definitions = await self._streams.with_names(namespace, names[: limits.PAGE_ITEMS_MAX])
        return {stream.name.name: stream for stream in definitions}
