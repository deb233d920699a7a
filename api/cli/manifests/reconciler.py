"""Comparison and application of documents to a service, each object on its own."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from api.cli.errors import CliError, ExitCode
from api.cli.manifests.documents import ManifestDocument
from api.cli.manifests.faults import faults_of
from api.cli.manifests.kinds import KINDS
from api.cli.shell.output import Row
from api.cli.shell.terminal import Terminal
from millstream_client.errors import (
    ConnectionFailed,
    MillstreamError,
    NotFound,
    NotMillstream,
    Refused,
    Unauthenticated,
    Unavailable,
)

OF_THE_SERVICE = (
    ConnectionFailed,
    NotMillstream,
    Unauthenticated,
    Unavailable,
)  # fail for every object


class DocumentOutcome(StrEnum):
    """Outcome of the application of a document."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


class DocumentResult(NamedTuple):
    """Result of a document. `changes`: pointer, and value before and after."""

    document: ManifestDocument
    outcome: DocumentOutcome
    changes: Sequence[Row] = ()
    errors: tuple[str, ...] = ()

    def row(self) -> Row:
        """Return the result in the form of JSON output."""
        return {
            "kind": self.document.kind,
            "name": self.document.name,
            "outcome": self.outcome.value,
            "changes": list(self.changes),
            "errors": list(self.errors),
        }


def in_dependency_order(documents: Iterable[ManifestDocument]) -> list[ManifestDocument]:
    """Sort documents so that each follows those that it names.

    A kind refers to kinds before it; a queue to the queue or topic of its dead letters, also through others.
    """
    ranks = {name: rank for rank, name in enumerate(KINDS)}
    waiting = {
        (document.kind, document.name): document
        for document in sorted(documents, key=lambda document: ranks[document.kind])
    }
    ordered: list[ManifestDocument] = []

    def add(document: ManifestDocument) -> None:
        waiting.pop((document.kind, document.name))
        target = waiting.get(_dead_letter_target(document))
        if target is not None:
            add(target)
        ordered.append(document)

    while waiting:
        add(next(iter(waiting.values())))
    return ordered


def _dead_letter_target(document: ManifestDocument) -> tuple[str, str]:
    """Return kind and name of what gets a queue's dead letters; no name without one."""
    policy = document.spec.get("dead_letters") if document.kind == "queue" else None
    if not isinstance(policy, dict):
        return "queue", ""
    kind = "topic" if policy.get("topic") else "queue"
    return kind, str(policy.get(kind) or "")


def apply(cli: Terminal, documents: Iterable[ManifestDocument]) -> Iterator[DocumentResult]:
    """Create or replace each object. Raises MillstreamError where the service fails."""
    for document in in_dependency_order(documents):
        try:
            yield _put(cli, document)
        except MillstreamError as error:
            yield _failed(document, error)


def compare(cli: Terminal, documents: Iterable[ManifestDocument]) -> Iterator[DocumentResult]:
    """Yield the result that `apply` would have for each object. Raises MillstreamError.

    The service validates each document; an object that it misses may be one that an earlier document creates.
    """
    created: set[str] = set()
    for document in in_dependency_order(documents):
        try:
            result = _put(cli, document, dry_run=True)
        except MillstreamError as error:
            names_new = bool(created.intersection(_names_in(document.spec)))
            is_expected = names_new and _misses_an_object(error)
            result = _expected(cli, document) if is_expected else _failed(document, error)
        if result.outcome is DocumentOutcome.CREATED:
            created.add(document.name)
        yield result


def _put(cli: Terminal, document: ManifestDocument, **conditions: Any) -> DocumentResult:
    stored = KINDS[document.kind].put(cli, document.name, document.spec, **conditions)
    if stored["created"]:
        return DocumentResult(document, DocumentOutcome.CREATED)
    outcome = DocumentOutcome.CHANGED if stored["changes"] else DocumentOutcome.UNCHANGED
    return DocumentResult(document, outcome, stored["changes"])


# ── Objects that name new ones ──


def _names_in(value: Any) -> Iterator[str]:
    """Yield the texts in a specification: names, also of `queue:NAME`."""
    if isinstance(value, str):
        yield value.rpartition(":")[2]
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _names_in(item)


def _misses_an_object(error: MillstreamError) -> bool:
    """Return whether the only fault is that objects do not exist."""
    if isinstance(error, NotFound):
        return True
    faults = error.errors if isinstance(error, Refused) else ()
    return bool(faults) and all(fault.code == "not_found" for fault in faults)


def _expected(cli: Terminal, document: ManifestDocument) -> DocumentResult:
    """Return the result to expect, by comparing settings here."""
    kind = KINDS[document.kind]
    try:
        before = kind.settings_of(kind.get(cli, document.name))
    except NotFound:
        return DocumentResult(document, DocumentOutcome.CREATED)
    changes = [
        {"pointer": f"/{name}", "before": before.get(name), "after": value}
        for name, value in document.spec.items()
        if before.get(name) != value
    ]
    return DocumentResult(document, DocumentOutcome.CHANGED, changes)


# ── Failures ──


def _failed(document: ManifestDocument, error: MillstreamError) -> DocumentResult:
    """Return the result of a failure of this object; raise one that all objects would have."""
    if isinstance(error, OF_THE_SERVICE):
        raise error
    return DocumentResult(
        document, DocumentOutcome.FAILED, errors=tuple(faults_of(document, error))
    )


def check_results(results: Sequence[DocumentResult]) -> None:
    """Raise CliError if objects failed: PARTIAL if others did not."""
    failed = [result for result in results if result.outcome is DocumentOutcome.FAILED]
    if failed:
        code = ExitCode.PARTIAL if len(failed) < len(results) else ExitCode.USAGE
        raise CliError(f"{len(failed)} of {len(results)} failed (see above)", code)
