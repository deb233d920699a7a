"""URL of a store that Sentinel watches: the Sentinels, and their name for it.

redis+sentinel://user:secret@sentinel-1:26379,sentinel-2/orders?db=0&sentinel_password=word
                 └ of the store ┘└────── addresses ────────┘└ name ┘
"""

import re
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from storage.domain.replication.member_urls import host_and_port, normalize_address

PORT_DEFAULT = 26_379
SCHEMES = ("redis+sentinel", "rediss+sentinel")
OPTIONS = ("db", "sentinel_username", "sentinel_password")
_URL = re.compile(
    r"(?P<scheme>rediss?)\+sentinel://(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]+)/(?P<name>[A-Za-z0-9._-]+)(?:\?(?P<query>[^#]*))?"
)
_SYNTAX = "redis+sentinel://:password@sentinel-1:26379,sentinel-2:26379/name"


class SentinelUrl(NamedTuple):
    """Parsed URL; credentials are those of the store, `sentinel_` ones those of the Sentinels."""

    is_tls: bool
    sentinels: tuple[tuple[str, int], ...]
    name: str
    username: str | None
    password: str | None
    db: int
    sentinel_username: str | None
    sentinel_password: str | None

    def sentinel_options(self, wait_s: float) -> dict[str, Any]:
        """Return the options of a client's connections to the Sentinels."""
        return {
            "username": self.sentinel_username,
            "password": self.sentinel_password,
            "socket_timeout": wait_s,
            "socket_connect_timeout": wait_s,
            "ssl": self.is_tls,
        }


def is_sentinel_url(url: str) -> bool:
    """Return whether a URL names Sentinels."""
    return url.partition("://")[0] in SCHEMES


def parse_sentinel_url(url: str) -> SentinelUrl:
    """Parse a URL. Raises ValueError, without repeating it: it may contain a password."""
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError(f"cannot be parsed: use {_SYNTAX}")
    try:
        sentinels = tuple(map(_address, match["hosts"].split(",")))
    except ValueError:
        raise ValueError(f"has an invalid address of a Sentinel: use {_SYNTAX}") from None
    options = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    if unknown := options.keys() - set(OPTIONS):
        raise ValueError(f"unknown option {min(unknown)}; the options are {', '.join(OPTIONS)}")
    db = options.get("db", "0")
    if not db.isdecimal():
        raise ValueError("the option db is not a number")
    username, separator, password = (match["user"] or "").partition(":")
    return SentinelUrl(
        is_tls=match["scheme"] == "rediss",
        sentinels=sentinels,
        name=match["name"],
        username=unquote(username) or None,
        password=unquote(password) if separator else None,
        db=int(db),
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
    )


def _address(text: str) -> tuple[str, int]:
    host = text.rpartition("]")[2]
    return host_and_port(normalize_address(text if ":" in host else f"{text}:{PORT_DEFAULT}"))
