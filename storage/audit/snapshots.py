"""Snapshots of definitions for the audit log: plain values, without secrets.

A definition consists of its owner's request (`QueueSpec`, `StreamSpec` …), so its fields are the ones that are
listed there. A webhook is shown with the names of its headers, and the scheme and host of its URL: the rest may be a
password.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from storage.access.credentials import Credentials
from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.access.audit import Snapshot, canonical
from storage.domain.access.credentials import IssuedCredential
from storage.domain.access.permissions import Principal
from storage.domain.definitions import StoredDefinition
from storage.domain.errors import ErrorCategory, MillstreamError
from storage.domain.mirrors.mirror import MirrorSpec
from storage.domain.names import (
    GroupName,
    MirrorName,
    QueueName,
    RouteName,
    SourceName,
    StreamName,
    TopicName,
    ViewName,
    WebhookName,
)
from storage.domain.sources.source import SourceSpec
from storage.domain.topics.route import RouteSpec, UrlTarget
from storage.domain.webhooks import WebhookSpec
from storage.groups.engine import Groups
from storage.mirrors.engine import Mirrors
from storage.sources.engine import Sources
from storage.topics.routes import TopicRoutes
from storage.views.engine import Views
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
_ABSENT = (ErrorCategory.NOT_FOUND, ErrorCategory.INVALID)

Read = Callable[[str, str], Awaitable[StoredDefinition]]
"""Reads the definition of a namespace and a name."""


class AuditSnapshots:
    """Reader of definitions by the nouns of native paths."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        routes: TopicRoutes,
        groups: Groups,
        webhooks: Webhooks,
        sources: Sources,
        views: Views,
        mirrors: Mirrors,
        credentials: Credentials,
    ) -> None:
        self._credentials = credentials
        self._nouns: Mapping[str, Read] = {
            "queues": lambda namespace, name: catalog.fresh_queue(QueueName(name, namespace)),
            "streams": lambda namespace, name: catalog.fresh_stream(StreamName(name, namespace)),
            "topics": lambda namespace, name: catalog.fresh_stream(
                TopicName(name, namespace).stream
            ),
            "routes": lambda namespace, name: routes.get(_route_name(namespace, name)),
            "groups": lambda namespace, name: groups.get(GroupName(name, namespace)),
            "webhooks": lambda namespace, name: webhooks.get(WebhookName(name, namespace)),
            "sources": lambda namespace, name: sources.get(SourceName(name, namespace)),
            "views": lambda namespace, name: views.get(ViewName(name, namespace)),
            "mirrors": lambda namespace, name: mirrors.get(MirrorName(name, namespace)),
            "namespaces": lambda _, name: catalog.namespaces.get(name),
        }

    async def of(self, by: Principal, noun: str, name: str) -> Snapshot | None:
        """Return the snapshot of a resource, as `by` may see it; None if it does not exist.

        `noun` is `keys` or one of the nouns with definitions; None for other nouns. Raises StorageUnavailable.
        """
        try:
            if noun == "keys":
                return _of_key(await self._credentials.get(by, name))
            if read := self._nouns.get(noun):
                return definition_snapshot((await read(by.namespace, name)).spec)
        except MillstreamError as error:
            if error.code.category not in _ABSENT:
                raise
        return None


def _route_name(namespace: str, name: str) -> RouteName:
    """Return the route of a name such as `orders/billing`."""
    topic, _, route = name.partition("/")
    return RouteName(TopicName(topic, namespace), route)


def definition_snapshot(spec: msgspec.Struct) -> Snapshot:
    """Return a definition for the log; for a huge one its size and digest."""
    values: Snapshot = msgspec.to_builtins(spec)
    if isinstance(spec, WebhookSpec):
        values |= _of_webhook(spec)
    if isinstance(spec, RouteSpec) and spec.target.url is not None:
        values["target"] |= _of_url(spec.target.url, spec.target)
    if isinstance(spec, SourceSpec):
        del values["secrets"]
    if isinstance(spec, MirrorSpec):
        del values["key"]
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
    return {"source": str(spec.source), **_of_url(spec.url, spec)}


def _of_url(url: str, spec: WebhookSpec | UrlTarget) -> dict[str, Any]:
    """Return a URL, the names of its headers and its credentials, without anything secret."""
    values: dict[str, Any] = {
        "url": _without_path(url),
        "url_digest": hashlib.sha256(url.encode()).hexdigest()[:_DIGEST_CHARACTERS],
        "headers": sorted(name for name, _ in spec.headers or ()),
    }
    if spec.credentials is not None:
        oauth = msgspec.to_builtins(spec.credentials.oauth)
        oauth.pop("client_secret", None)
        values["credentials"] = {"oauth": {**oauth, "token_url": _without_path(oauth["token_url"])}}
    return values


def _without_path(url: str) -> str:
    """Return a URL without its path, which may have a secret."""
    place = urlsplit(url)
    return f"{place.scheme}://{place.netloc}/…"
