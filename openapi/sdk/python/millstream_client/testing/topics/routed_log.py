"""Logs of messages with routes, which decide what takes each message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from millstream_client.testing.definitions import Clock, Defined, moment
from millstream_client.testing.problems import Problem, invalid
from millstream_client.testing.streams import MemoryStream, StoredRecord
from millstream_client.testing.topics.copies import Copy
from millstream_client.testing.topics.matches import matches
from millstream_client.testing.topics.published import PublishedMessage
from millstream_client.testing.topics.route import MemoryRoute
from millstream_client.testing.topics.route_catalog import RouteCatalog
from millstream_client.testing.topics.targets import OF_QUEUE, check_cycle, read_only

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


OWN_DEAD_LETTERS = "The queue whose messages the route takes cannot be its dead-letter queue"


class RoutedLog(Defined):
    """Log of a topic, or a stream that has routes, with its `messages` and `routes`."""

    is_fifo = False
    is_of_stream = False
    is_published_to = False

    def __init__(
        self,
        name: str,
        config: dict[str, Any],
        now: Clock,
        log: MemoryStream,
        service: MemoryService,
    ) -> None:
        super().__init__(name, config, now)
        self.log = log
        self.service = service
        self.routes = RouteCatalog(self._make_route, self._check_source)
        self._numbers = 0
        self._messages: dict[str, PublishedMessage] = {}

    @property
    def described(self) -> str:
        """The topic as the subject of a sentence."""
        return f"Topic '{self.name}'"

    @property
    def meta(self) -> dict[str, str]:
        """Names of its place, for matches."""
        return {"topic": self.name}

    @property
    def messages(self) -> list[PublishedMessage]:
        """Messages that the log keeps, by acceptance."""
        records = {self._id_of(record): record for record in self.log.records}
        self._messages = {
            id_: self._messages.get(id_) or PublishedMessage(id_, record, {})
            for id_, record in records.items()
        }
        return [*self._messages.values()]

    def _id_of(self, record: StoredRecord) -> str:
        return f"{self.log.id}-{record.shard}-{record.offset}"

    def next_number(self) -> int:
        """Return the number of the next revision of a route."""
        self._numbers += 1
        return self._numbers

    def stats(self) -> dict[str, Any]:
        """Return the counts."""
        waiting = [copy for route in self.routes.objects.values() for copy in route.waiting]
        oldest = min((copy.message.record.arrived_at for copy in waiting), default=self.now())
        return {
            "messages": len(self.messages),
            "bytes_held": sum(len(message.record.data) for message in self.messages),
            "routes": len(self.routes.objects),
            "lag_messages": len({copy.message.id for copy in waiting}),
            "lag_seconds": self.now() - oldest,
        }

    def message(self, message_id: str) -> PublishedMessage:
        """Return a message by its id. Raises Problem."""
        for message in self.messages:
            if message.id == message_id:
                return message
        raise Problem("message_not_found", "The topic has no message of this id.")

    def message_routes(self, message_id: str) -> dict[str, Any]:
        """Return the routes that take a message, and the state of each."""
        message = self.message(message_id)
        copies = sorted(message.copies, key=lambda copy: copy.number)
        at = moment(message.record.arrived_at)
        routes = [self._shown_copy(copy) for copy in copies]
        return {"id": message.id, "published_at": at, "routes": routes}

    def _shown_copy(self, copy: Copy) -> dict[str, Any]:
        """Return the state of a copy; that of a deleted route, or former revision, is removed."""
        route = copy.route
        is_present = copy.number == route.number or copy.state == "waiting"
        if self.routes.objects.get(route.name) is not route or not is_present:
            return {"route": None, "number": copy.number, "state": "removed"}
        member = copy.member if copy.state != "shadow" else None
        shown = {"route": route.name, "number": copy.number, "state": copy.state}
        return shown | ({"member": member} if member else {})

    # ── Acceptance ──

    def publish(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Publish messages. Raises Problem."""
        return self.accept(messages)

    def accept(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Accept messages. Raises Problem for a log whose source is a stream or a queue."""
        raise read_only()

    def collect(self) -> bool:
        """Take what its source has; return whether that was anything."""
        return False

    def add(self, record: StoredRecord, fields: dict[str, Any]) -> tuple[PublishedMessage, int]:
        """Add a record of the log, which its routes take; return the number of live ones."""
        message = PublishedMessage(self._id_of(record), record, fields)
        self._messages[message.id] = message
        document = message.document(self.meta)
        live = self.live_routes(document)
        for route in [*live, *self._shadow_routes(document, live)]:
            route.take(message)
        return message, len(live)

    def live_routes(self, document: dict[str, Any]) -> list[MemoryRoute]:
        """Return the routes that deliver a message: those that match, or else the unmatched."""
        live = [route for route in self.routes.objects.values() if route.is_live]
        matching = [route for route in live if _takes(route, document)]
        return matching or [route for route in live if route.takes_unmatched]

    def _shadow_routes(
        self, document: dict[str, Any], live: list[MemoryRoute]
    ) -> Iterable[MemoryRoute]:
        is_unmatched = all(route.takes_unmatched for route in live)
        for route in self.routes.objects.values():
            is_taking = is_unmatched if route.takes_unmatched else _takes(route, document)
            if is_taking and not route.is_live:
                yield route

    # ── Routes ──

    def _make_route(self, name: str, config: dict[str, Any]) -> MemoryRoute:
        return MemoryRoute(name, config, self.now, self)

    def _check_source(self, fields: dict[str, Any]) -> None:
        """Raise Problem for a route of this source that would bring it its own messages."""
        if "target" in fields:
            check_cycle(self.name, self.described, fields["target"], self.service.topics.targets_of)
        if f"{OF_QUEUE}{fields.get('dead_letter_queue')}" == self.name:
            raise invalid("/dead_letter_queue", OWN_DEAD_LETTERS, "not_allowed")


def _takes(route: MemoryRoute, document: dict[str, Any]) -> bool:
    return not route.takes_unmatched and matches(route.config["match"], document)
