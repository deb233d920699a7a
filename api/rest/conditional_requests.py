"""Conditional requests on configuration (RFC 9110): ETags are `"v3"`, strong, the version in quotes."""

import re
from typing import Annotated

from fastapi import Header

from storage.domain.errors import ValidationFailed

IfMatch = Annotated[
    str | None, Header(description='Act only on this version: its ETag, such as `"v3"`.')
]
IfNoneMatch = Annotated[str | None, Header(description="With `*` on PUT: create, never replace.")]

ANY = "*"
NO_VERSION = 0
"""What no stored version is: versions count from 1."""

_ETAG = re.compile(r'"v([1-9][0-9]{0,17})"')


def etag(version: int) -> str:
    """The ETag of a version."""
    return f'"v{version}"'


def expected_version(if_match: str | None) -> int | None:
    """The version that If-Match names; None when it names none or any; NO_VERSION when none can match."""
    if if_match is None or if_match.strip() == ANY:
        return None
    named = _ETAG.fullmatch(if_match.strip())
    return int(named[1]) if named else NO_VERSION


def is_create_only(if_none_match: str | None) -> bool:
    """Whether a PUT may only create. Raises ValidationFailed for anything but `*`."""
    if if_none_match is None:
        return False
    if if_none_match.strip() != ANY:
        raise ValidationFailed.at(
            "/If-None-Match", "Only '*' has a meaning on PUT", "not_supported"
        )
    return True


def is_unchanged(if_none_match: str | None, version: int) -> bool:
    """Whether a GET's reader has this version already."""
    if if_none_match is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return ANY in tags or etag(version) in tags
