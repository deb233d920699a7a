"""Routes of an in-memory topic by name, and the rules of their configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream_client.core.defaults import DEFAULTS
from millstream_client.testing.definitions import Catalog
from millstream_client.testing.problems import invalid, unsupported
from millstream_client.testing.topics.matches import check_match
from millstream_client.testing.topics.route import MemoryRoute
from millstream_client.testing.topics.spreads import KINDS, completed, named_targets
from millstream_client.testing.topics.targets import check_target

SIMPLE = {"transform": None, "format": "body", "start": "latest", "start_time": None}
"""Settings of routes that the in-memory service has only with this value."""


class RouteCatalog(Catalog[MemoryRoute]):
    """Routes of a topic by name."""

    def __init__(
        self,
        make: Callable[[str, dict[str, Any]], MemoryRoute],
        check_source: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__("route", make)
        self._check_source = check_source

    def put(self, name: str, fields: dict[str, Any], **conditions: Any) -> tuple[int, Any]:
        """Create or replace a route; return the status and the stored route."""
        if "target" not in fields:
            raise invalid("/target", "Field required", "required")
        status, stored = super().put(name, fields, **conditions)
        return status, {**stored, "secret": None, "in_force": not stored["dry_run"]}

    def _check(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if name not in DEFAULTS[self.schema]:
                raise invalid(f"/{name}", f"Unknown field {name!r}", "unknown_field")
            if value != SIMPLE.get(name, value):
                raise unsupported(f"{name} of routes other than {SIMPLE[name]!r}")
        if "target" in fields:
            check_target(fields["target"])
        self._check_source(fields)
        check_match(fields.get("match"))

    def _checked_config(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        """Complete the target, and check what depends on it."""
        target = {name: config["target"].get(name) for name in KINDS}
        if config["target"].get("spread") is not None:
            target = completed(config["target"])
        if not any(one.get("queue") is not None for one in named_targets(target)):
            for field in ("delay_seconds", "ttl_seconds"):
                if config[field]:
                    detail = "Only the messages of a queue or a URL have it"
                    raise invalid(f"/{field}", detail, "not_supported")
        if config["on_failure"] == "dead_letter" and config["dead_letter_queue"] is None:
            detail = "on_failure 'dead_letter' requires a dead-letter queue"
            raise invalid("/dead_letter_queue", detail, "required")
        return {**config, "target": target}

    def page(self, query: Any) -> dict[str, Any]:
        """Return the routes whose names have a prefix."""
        return without_measurements(super().page(query))


def without_measurements(page: dict[str, Any]) -> dict[str, Any]:
    """Return a page of definitions that are not measured."""
    for item in page["items"]:
        del item["measurement"]
    return page
