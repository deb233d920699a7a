"""Finding queues and streams by what an operator remembers of them: a part of the name, a tag."""

from collections.abc import Mapping, Sequence

from storage.domain import limits
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import Queue
from storage.domain.streams.stream import Stream
from storage.postgres.database import Database
from storage.postgres.repositories.definitions import Definitions, QueueRows, StreamRows

_NO_TAGS: Mapping[str, str] = {}


class CatalogSearch:
    """Lists that are looked through, each one statement, fresh from Postgres. All raise StorageUnavailable."""

    def __init__(self, database: Database) -> None:
        self._queues: Definitions[QueueName, Queue] = Definitions(database, QueueRows())
        self._streams: Definitions[StreamName, Stream] = Definitions(database, StreamRows())

    async def queue_names(
        self, namespace: str, part: str = "", tags: Mapping[str, str] = _NO_TAGS
    ) -> list[str]:
        """Names of queues that contain `part` and bear all those tags, by name; LISTED_NAMES_MAX at most."""
        return await self._queues.names(namespace, part, tags, limits.LISTED_NAMES_MAX)

    async def stream_names(
        self, namespace: str, part: str = "", tags: Mapping[str, str] = _NO_TAGS
    ) -> list[str]:
        """As `queue_names`, of streams."""
        return await self._streams.names(namespace, part, tags, limits.LISTED_NAMES_MAX)

    async def queues(self, namespace: str, names: Sequence[str]) -> dict[str, Queue]:
        """Those of the named queues that are there; PAGE_ITEMS_MAX names at most."""
        found = await self._queues.named(namespace, names[: limits.PAGE_ITEMS_MAX])
        return {queue.name.name: queue for queue in found}

    async def streams(self, namespace: str, names: Sequence[str]) -> dict[str, Stream]:
        """As `queues`, of streams."""
        found = await self._streams.named(namespace, names[: limits.PAGE_ITEMS_MAX])
        return {stream.name.name: stream for stream in found}
