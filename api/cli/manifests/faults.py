"""Faults that the service reports of a document, with their locations in the file."""

from collections.abc import Sequence

from api.cli.manifests.documents import ManifestDocument
from api.cli.shell.error_messages import cli_error_from
from millstream_client.errors import Fault, MillstreamError, Refused


def faults_of(document: ManifestDocument, error: MillstreamError) -> list[str]:
    """Return a line for each fault."""
    faults: Sequence[Fault] = error.errors if isinstance(error, Refused) else ()
    if not faults:
        return [f"{document.location()}: {document.title}: {cli_error_from(error)}"]
    return [
        f"{document.location(fault.pointer)}: {document.title}: {fault.detail}" for fault in faults
    ]
