"""Definitions of queues, streams, groups, topics and routes: create, change and list."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from millstream_client.core import params
from millstream_client.core.defaults import DEFAULTS
from millstream_client.testing.problems import Problem, invalid, unsupported

PARAMS: dict[str, Any] = {
    "QueueConfig": params.QueueConfigParams,
    "StreamConfig": params.StreamConfigParams,
    "TopicConfig": params.TopicConfigParams,
}
SIMPLE: dict[str, Any] = {"on_poison": "skip", "overflow": "reject", "group_weights": []}
SIMPLE |= {"messages_max": None, "bytes_max": None, "stream_view": False}
SIMPLE |= {"expires_after_idle_seconds": None}
"""Settings that the in-memory service has only with this value."""

IMMUTABLE = ("type", "shards", "stream", "kind", "start", "start_time")
IMMUTABLE_OF_TOPICS = ("dedup_scope",)


class Clock(Protocol):
    """Source of the time, in seconds since 1970."""

    def __call__(self) -> float: ...


class Defined:
    """An object with a configuration."""

    def __init__(self, name: str, config: dict[str, Any], now: Clock) -> None:
        self.name = name
        self.config = config
        self.now = now
        self.version = 1
        self.created_at = self.changed_at = now()

    def shown(self) -> dict[str, Any]:
        """Return the configuration as the API does."""
        times = {"created_at": self.created_at, "changed_at": self.changed_at}
        return {
            "name": self.name,
            **self.config,
            "version": self.version,
            **{name: moment(at) for name, at in times.items()},
        }

    def configure(self, config: dict[str, Any]) -> None:
        """Replace the configuration."""
        if config != self.config:
            self.config = config
            self.version += 1
            self.changed_at = self.now()


T = TypeVar("T", bound=Defined)


class Catalog(Generic[T]):
    """All objects of a kind, by name."""

    def __init__(self, kind: str, make: Callable[[str, dict[str, Any]], T]) -> None:
        self.kind = kind
        self.schema = f"{kind.title()}Config"
        self.make = make
        self.objects: dict[str, T] = {}

    def get(self, name: str) -> T:
        """Return an object. Raises Problem."""
        try:
            return self.objects[name]
        except KeyError:
            detail = f"{self.kind.title()} {name!r} does not exist."
            raise Problem(f"{self.kind}_not_found", detail) from None

    def put(
        self, name: str, fields: dict[str, Any], *, only_new: bool = False, dry_run: bool = False
    ) -> tuple[int, dict[str, Any]]:
        """Create or replace an object; return the status and the stored object."""
        existing = self.objects.get(name)
        given = _with_partitions(fields, existing) if self.kind == "queue" else fields
        config = self._complete(name, given)
        if existing is None:
            made = self.make(name, config)
            if not dry_run:
                self.objects[name] = made
            return 201, _stored(made.shown(), created=True, dry_run=dry_run, changes=[])
        config["paused"] = existing.config["paused"]
        if only_new:
            raise self._exists(existing, {name: config[name] for name in fields})
        changes = _changes(existing.config, config)
        self._check_immutable(existing, changes)
        if dry_run:
            planned = {name: config.get(name, value) for name, value in existing.shown().items()}
            return 200, _stored(planned, created=False, dry_run=True, changes=changes)
        existing.configure(config)
        return 200, _stored(existing.shown(), created=False, dry_run=False, changes=changes)

    def patch(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Change fields; None resets one to its default."""
        existing = self.get(name)
        self._check(fields)
        defaults = DEFAULTS[self.schema]
        nullable = {"ttl_seconds", "attempts_max", "dead_letters", "backoff", "retention_seconds"}
        changed = {
            field: defaults[field] if value is None and field not in nullable else value
            for field, value in fields.items()
            if (field, value) != ("partitions", None)
        }
        config = self._checked_config(name, {**existing.config, **changed})
        self._check_immutable(existing, _changes(existing.config, config))
        existing.configure(config)
        return existing.shown()

    def pause(self, name: str, paused: bool) -> dict[str, Any]:
        """Pause or resume an object."""
        existing = self.get(name)
        existing.configure({**existing.config, "paused": paused})
        return existing.shown()

    def delete(self, name: str) -> None:
        """Delete an object. Raises Problem."""
        self.get(name)
        del self.objects[name]

    def page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the objects whose names have a prefix."""
        names = sorted(name for name in self.objects if name.startswith(query.get("prefix", "")))
        items = [{**self.objects[name].shown(), "measurement": None} for name in names]
        return {"items": items, "next_cursor": None}

    def _complete(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        self._check(fields)
        return self._checked_config(name, {**DEFAULTS[self.schema], **fields, "paused": False})

    def _checked_config(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Complete a backoff policy, and check what depends on the type of a queue."""
        if config.get("backoff"):
            config["backoff"] = {**DEFAULTS["BackoffConfig"], **config["backoff"]}
        if config.get("dead_letters"):
            config["dead_letters"] = {"queue": None, "topic": None, **config["dead_letters"]}
        if config.get("deduplicate_by_content") and config["type"] != "fifo":
            raise invalid("/dedup_scope", "Deduplication requires a FIFO queue", "not_supported")
        is_fifo = config.get("type") == "fifo"
        if (config.get("partitions") or 1) > 1 and is_fifo and config["dedup_scope"] != "group":
            detail = "A FIFO queue with partitions requires the deduplication scope 'group'"
            raise invalid("/dedup_scope", detail, "required")
        return config

    def _check(self, fields: dict[str, Any]) -> None:
        for field, value in fields.items():
            if field not in DEFAULTS[self.schema]:
                raise invalid(f"/{field}", f"Unknown field {field!r}", "unknown_field")
            if value != SIMPLE.get(field, value):
                raise unsupported(f"{field} other than {SIMPLE[field]!r}")
            if field == "dead_letters" and value and value.get("topic"):
                raise unsupported("topic for dead letters")
        if self.schema in PARAMS:
            given = {name: value for name, value in fields.items() if value is not None}
            _convert(given, PARAMS[self.schema])

    def _check_immutable(self, existing: T, changes: list[dict[str, Any]]) -> None:
        is_fifo = existing.config.get("type") == "fifo"
        for change in changes:
            is_fixed = change["pointer"] == "/partitions" and is_fifo
            fixed = IMMUTABLE + (IMMUTABLE_OF_TOPICS if self.kind == "topic" else ())
            if is_fixed or change["pointer"][1:] in fixed:
                raise invalid(change["pointer"], f"{change['pointer']} is immutable.", "immutable")

    def _exists(self, existing: T, requested: dict[str, Any]) -> Problem:
        changes = _changes(existing.config, requested)
        detail = f"The {self.kind} {existing.name!r} already exists."
        return Problem("precondition_failed", detail, current=existing.shown(), changes=changes)


def _with_partitions(fields: dict[str, Any], existing: Defined | None) -> dict[str, Any]:
    """Return a queue's fields with its number of partitions: as many as it has, unless given."""
    current = 1 if existing is None else existing.config["partitions"]
    return {**fields, "partitions": fields.get("partitions") or current}


def _convert(fields: dict[str, Any], kind: Any) -> None:
    try:
        msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$.")
        pointer = "/" + path.rstrip("`").replace(".", "/")
        raise invalid(pointer, text, "invalid") from None


def _stored(shown: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {**shown, **facts}


def _changes(
    before: dict[str, Any], after: dict[str, Any], parent: str = ""
) -> list[dict[str, Any]]:
    """Return the fields that differ, also those of objects."""
    changes: list[dict[str, Any]] = []
    for name in after if not parent else sorted({*before, *after}):
        old, new, pointer = before.get(name), after.get(name), f"{parent}/{name}"
        if isinstance(old, dict) and isinstance(new, dict):
            changes += _changes(old, new, pointer)
        elif old != new:
            changes.append({"pointer": pointer, "before": old, "after": new})
    return changes


def moment(at: float) -> str:
    """Format a time as the API does."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    """Return a time of the API in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
