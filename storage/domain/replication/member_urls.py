"""Member addresses in the URL of the hot store, and the URL of each member.

rediss://user:secret@store-1:6379,store-2,[fd00::3]:6380/0?option=1
                     └────────── addresses ──────────┘
"""

import re
from ipaddress import AddressValueError, IPv6Address

PORT_DEFAULT = 6379
_PORT_MAX = 65_535
_URL = re.compile(
    r"(?P<scheme>rediss?)://(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]*)(?P<rest>[/?].*)?"
)
_ADDRESS = re.compile(r"(?P<host>\[[^\]]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_SYNTAX = "redis://:password@host-1:6379,host-2:6379,host-3:6379/0"
_ESCAPES = "with %40 for an @ in the password, %2F for a /, %23 for a #"


def has_several_hosts(redis_url: str) -> bool:
    """Return whether a URL names several stores."""
    match = _URL.fullmatch(redis_url)
    return match is not None and "," in match["hosts"]


def member_addresses(redis_url: str) -> tuple[str, ...]:
    """Return the normalized addresses of a URL, `host:port`, in their order.

    Raises ValueError, without repeating the URL, which may contain a password.
    """
    try:
        addresses = tuple(map(normalize_address, _parse(redis_url)["hosts"].split(",")))
    except ValueError:  # it repeats what may be part of a password
        raise ValueError(f"cannot be parsed: use {_SYNTAX}, {_ESCAPES}") from None
    if len(set(addresses)) < len(addresses):
        repeated = next(address for address in addresses if addresses.count(address) > 1)
        raise ValueError(f"{repeated} is listed twice")
    return addresses


def member_url(redis_url: str, address: str) -> str:
    """Return the URL of one member: the URL's user, password, database, TLS and options.

    Raises ValueError.
    """
    parts = _parse(redis_url)
    before = "" if parts["user"] is None else f"{parts['user']}@"
    return f"{parts['scheme']}://{before}{normalize_address(address)}{parts['rest'] or ''}"


def normalize_address(text: str) -> str:
    """Return an address as `host:port`, lower case, with the default port where it has none.

    An IPv6 host stays in brackets, in its shortest form. Raises ValueError.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not an address: use host:port")
    port = int(match["port"] or PORT_DEFAULT)
    if not 0 < port <= _PORT_MAX:
        raise ValueError(f"{text!r} has no valid port: use 1 to {_PORT_MAX}")
    return f"{_normalize_host(match['host'])}:{port}"


def zones_by_address(text: str) -> dict[str, str]:
    """Parse zones of members, `host:port=zone,host:port=zone`. Raises ValueError."""
    zones: dict[str, str] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        address, separator, zone = map(str.strip, pair.rpartition("="))
        if not separator or not zone:
            raise ValueError(f"{pair!r} names no zone: use host:port=zone")
        address = normalize_address(address)
        if address in zones:
            raise ValueError(f"{address} is listed twice")
        zones[address] = zone
    return zones


def host_and_port(address: str) -> tuple[str, int]:
    """Split a normalized address; an IPv6 host has no brackets then."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def join_address(host: str, port: int) -> str:
    """Join a host and a port, as a server reports them, to a normalized address."""
    return normalize_address(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _normalize_host(host: str) -> str:
    if not host.startswith("["):
        return host.lower()
    try:
        return f"[{IPv6Address(host[1:-1]).compressed}]"
    except AddressValueError:
        raise ValueError(f"{host} is not an IPv6 address") from None


def _parse(redis_url: str) -> re.Match[str]:
    match = _URL.fullmatch(redis_url)
    if match is None:
        raise ValueError(f"cannot be parsed: use {_SYNTAX}, {_ESCAPES}")
    return match
