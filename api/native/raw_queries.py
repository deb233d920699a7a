"""Queries of the raw endpoints, for callers that choose only the URL of their requests."""

from typing import Annotated

import msgspec
from msgspec import Meta

from api.types import RequestHeaders
from storage.domain import limits
from storage.domain.errors import ValidationFailed

_OWN_PREFIX = b"millstream-"
_CREDENTIALS = frozenset({b"authorization", b"proxy-authorization", b"cookie", b"x-api-key"})
"""Headers that are never copied: whoever reads the message must not act as its sender."""


class _HeaderQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Headers of the request to copy."""

    keep_headers: Annotated[
        str,
        Meta(
            description="Prefixes, separated by commas, of request headers to keep as headers: "
            "`x-github-,webhook-`. Credentials are never kept."
        ),
    ] = ""

    def applied_to(self, headers: RequestHeaders) -> RequestHeaders:
        """Return the request's headers with those that the query stands for.

        Raises ValidationFailed.
        """
        return {**headers, **self._copied(headers), **self._own()}

    def _own(self) -> RequestHeaders:
        """Return the headers that the query's other parameters stand for."""
        return {}

    def _copied(self, headers: RequestHeaders) -> RequestHeaders:
        prefixes = self._prefixes()
        return {
            b"millstream-header-" + name: value
            for name, value in headers.items()
            if name.startswith(prefixes) and _may_be_copied(name)
        }

    def _prefixes(self) -> tuple[bytes, ...]:
        if not self.keep_headers:
            return ()
        names = [name.strip().lower() for name in self.keep_headers.split(",")]
        if not all(name and name.isascii() for name in names):
            detail = "Prefixes of header names, in ASCII, separated by commas"
            raise ValidationFailed.at("/keep_headers", detail)
        return tuple(name.encode() for name in names)


class RawMessageQuery(_HeaderQuery):
    """Group of a raw message, and headers of the request to keep with it."""

    group: Annotated[
        str,
        Meta(
            max_length=limits.GROUP_CHARACTERS_MAX,
            description="Message group, as the header `Millstream-Group`.",
        ),
    ] = ""

    def _own(self) -> RequestHeaders:
        return {b"millstream-group": self.group.encode()} if self.group else {}


class RawPublicationQuery(_HeaderQuery):
    """Subject and key of a raw message, and headers of the request to keep with it."""

    subject: Annotated[
        str,
        Meta(
            max_length=limits.SUBJECT_BYTES_MAX,
            description="Subject of the message, as the header `Millstream-Subject`.",
        ),
    ] = ""
    key: Annotated[
        str,
        Meta(
            max_length=limits.KEY_CHARACTERS_MAX,
            description="Key of the message, as the header `Millstream-Key`.",
        ),
    ] = ""

    def _own(self) -> RequestHeaders:
        fields = {b"millstream-subject": self.subject, b"millstream-key": self.key}
        return {name: value.encode() for name, value in fields.items() if value}


class RawRecordQuery(_HeaderQuery):
    """Key of a raw record, and headers of the request to keep with it."""

    key: Annotated[
        str,
        Meta(
            max_length=limits.KEY_CHARACTERS_MAX,
            description="Key of the record, as the header `Millstream-Key`.",
        ),
    ] = ""

    def _own(self) -> RequestHeaders:
        return {b"millstream-key": self.key.encode()} if self.key else {}


def _may_be_copied(name: bytes) -> bool:
    return name not in _CREDENTIALS and not name.startswith(_OWN_PREFIX)
