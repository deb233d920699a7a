"""Conditional requests on configuration (RFC 9110), with strong ETags such as `"v3"`."""

import re
from typing import Annotated

from fastapi import Header, Response

from storage.domain.definitions import ANY_VERSION
from storage.domain.errors import ValidationFailed

IfMatch = Annotated[
    str | None, Header(description='Apply only to this version, given by its ETag, such as `"v3"`.')
]
IfNoneMatch = Annotated[str | None, Header(description="`*` on PUT: create only, never replace.")]

ANY = "*"
NO_VERSION = 0
"""A version that no definition has: versions count from 1."""
NO_STORE = "no-store"
"""Cache-Control of an answer that has a secret, or what only the caller may see."""

_ETAG = re.compile(r'"v([1-9][0-9]{0,17})"')


def etag(version: int) -> str:
    """Return the ETag of a version."""
    return f'"v{version}"'


def note_outcome(response: Response, version: int, *, created: bool) -> None:
    """Set the status and ETag of the answer to a PUT."""
    response.status_code = 201 if created else 200
    response.headers["etag"] = etag(version)


def expected_version(if_match: str | None) -> int | None:
    """Return the version in If-Match.

    ANY_VERSION for `*`; NO_VERSION when no version can match.
    """
    if if_match is None:
        return None
    if if_match.strip() == ANY:
        return ANY_VERSION
    named = _ETAG.fullmatch(if_match.strip())
    return int(named[1]) if named else NO_VERSION


def is_create_only(if_none_match: str | None) -> bool:
    """Return whether a PUT may only create. Raises ValidationFailed for values other than `*`."""
    if if_none_match is None:
        return False
    if if_none_match.strip() != ANY:
        raise ValidationFailed.at(
            "/If-None-Match", "PUT supports only If-None-Match: *", "not_supported"
        )
    return True


def is_unchanged(if_none_match: str | None, version: int) -> bool:
    """Return whether the client of a GET already has this version."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return ANY in tags or etag(version) in tags
