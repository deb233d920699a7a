"""Snapshots of definitions for the audit log: plain values, without secrets.

A definition consists of its owner's request (`QueueSpec`, `StreamSpec` …), so its fields are the ones that are
listed there. A webhook is shown with the names of its headers, and the scheme and host of its URL: the rest may be a
password.
"""

import hashlib
from typing import Any
from urllib.parse import urlsplit

import msgspec

from storage.access.credentials import Credentials
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.access.audit import Snapshot, canonical
from storage.domain.access.credentials import IssuedCredential
from storage.domain.access.permissions import Principal
from storage.domain.errors import (
    GroupNotFound,
    KeyNotFound,
    NamespaceNotFound,
    QueueNotFound,
    StreamNotFound,
    ValidationFailed,
    WebhookNotFound,
)
from storage.domain.names import GroupName, QueueName, StreamName, WebhookName
from storage.domain.webhooks import WebhookSpec
from storage.groups.engine import Groups
from storage.webhooks.engine import Webhooks

_DIGEST_CHARACTERS = 16
_OF_KEY = (
    "name",
    "kind",
    "namespace",
    "all_namespaces",
    "rights",
    "created_by",
    "revoked_at_ms",
)
_ABSENT = (
    KeyNotFound,
    QueueNotFound,
    StreamNotFound,
    GroupNotFound,
    WebhookNotFound,
    NamespaceNotFound,
    ValidationFailed,
)


class AuditSnapshots:
    """Reader of definitions by the nouns of native paths."""

    def __init__(
        self, catalog: Catalog, groups: Groups, webhooks: Webhooks, credentials: Credentials
    ) -> None:
        self._catalog = catalog
        self._groups = groups
        self._webhooks = webhooks
        self._credentials = credentials

    async def of(self, by: Principal, noun: str, name: str) -> Snapshot | None:
        """Return the snapshot of a resource, as `by` may see it; None if it does not exist.

        `noun` is `queues`, `streams`, `groups`, `webhooks`, `keys` or `namespaces`; None for other nouns. Raises
        StorageUnavailable.
        """
        try:
            if noun == "keys":
                return _of_key(await self._credentials.get(by, name))
            spec = await self._spec(noun, by.namespace, name)
        except _ABSENT:
            return None
        return None if spec is None else definition_snapshot(spec)

    async def _spec(self, noun: str, namespace: str, name: str) -> msgspec.Struct | None:
        match noun:
            case "queues":
                return (await self._catalog.fresh_queue(QueueName(name, namespace))).spec
            case "streams":
                return (await self._catalog.fresh_stream(StreamName(name, namespace))).spec
            case "groups":
                return (await self._groups.get(GroupName(name, namespace))).spec
            case "webhooks":
                return (await self._webhooks.get(WebhookName(name, namespace))).spec
            case "namespaces":
                return (await self._catalog.namespaces.get(name)).quotas
            case _:
                return None


def definition_snapshot(spec: msgspec.Struct) -> Snapshot:
    """Return a definition for the log; for a huge one its size and digest."""
    values: Snapshot = msgspec.to_builtins(spec)
    if isinstance(spec, WebhookSpec):
        values |= _of_webhook(spec)
    encoded = canonical(values).encode()
    if len(encoded) > limits.AUDIT_VALUE_BYTES_MAX:
        return {"bytes": len(encoded), "sha256": hashlib.sha256(encoded).hexdigest()}
    return values


def _of_key(issued: IssuedCredential) -> Snapshot:
    fields = {name: getattr(issued, name) for name in _OF_KEY}
    fields["everywhere"] = issued.all_namespaces  # former name, for one release
    values: Snapshot = msgspec.to_builtins(fields)
    return values


def _of_webhook(spec: WebhookSpec) -> dict[str, Any]:
    place = urlsplit(spec.url)
    return {
        "source": str(spec.source),
        "url": f"{place.scheme}://{place.netloc}/…",
        "url_digest": hashlib.sha256(spec.url.encode()).hexdigest()[:_DIGEST_CHARACTERS],
        "headers": sorted(name for name, _ in spec.headers or ()),
    }
