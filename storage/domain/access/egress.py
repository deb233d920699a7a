"""Egress rules: destinations of the requests that users cause this deployment to send.

Allowed are the public internet, and the destinations that its owner lists. A name by itself decides nothing: each
address that it resolves to is checked, at the moment of the connection. An owner's entry is a host, an address or
a network, with or without a port:

    127.0.0.1          any port of this machine, also by plain http
    10.1.0.0/16:8080   one port of a network
    hooks.internal     any address of the name
    [fd00::1]:8443     an IPv6 address and a port
"""

import ipaddress
import re
import socket
from collections.abc import Iterable

import httpx
import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

WEB_PORTS = frozenset({80, 443})
_DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE)

_NOT_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: clouds keep their credentials there
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/96",  # unspecified, loopback, IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64: an IPv4 address in disguise
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",  # Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",  # private
        "fe80::/10",  # link-local
        "fec0::/10",
        "ff00::/8",  # multicast
    )
)


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet.

    The address itself counts, not one that it may be translated to.
    """
    return address.is_global and not any(
        address.version == network.version and address in network for network in _NOT_PUBLIC
    )


class EgressRule(msgspec.Struct, frozen=True):
    """One allowed destination. `network` None: the host of that name."""

    host: str
    network: Network | None
    port: int | None

    def allows_port(self, port: int) -> bool:
        """Return whether the entry allows this port, or any."""
        return self.port is None or self.port == port


class Egress(msgspec.Struct, frozen=True):
    """Egress rule of a deployment."""

    entries: tuple[EgressRule, ...] = ()

    @classmethod
    def of(cls, words: Iterable[str]) -> "Egress":
        """Parse an owner's entries. Raises ValueError for an invalid one."""
        return cls(tuple(_entry(word) for word in words))

    def allows(self, host: str, address: Address, port: int) -> bool:
        """Return whether to allow a connection to `address` for a URL that names `host`."""
        if port in WEB_PORTS and is_public(address):
            return True
        return any(self._names(entry, host, address, port) for entry in self.entries)

    def _names(self, entry: EgressRule, host: str, address: Address, port: int) -> bool:
        if not entry.allows_port(port):
            return False
        if entry.network is None:
            return entry.host == host.lower().rstrip(".")
        return address.version == entry.network.version and address in entry.network

    def may_be_plain(self, host: str, port: int) -> bool:
        """Return whether http without TLS is allowed, judging by the URL: an entry names its host."""
        address = literal(host)
        return any(
            self._names(entry, host, address, port)
            if address is not None
            else entry.network is None and self._names(entry, host, _NOWHERE, port)
            for entry in self.entries
        )

    def check_url(self, url: str, pointer: str = "/url") -> None:
        """Raise ValidationFailed at `pointer` unless requests may be sent to this URL.

        Only what can be decided without resolving the host is checked.
        """
        try:
            self._check_url(url)
        except ValueError as error:
            raise ValidationFailed.at(pointer, str(error), "not_allowed") from None

    def _check_url(self, url: str) -> None:
        """Raise ValueError with the reason that is shown."""
        parsed = _parse(url)
        host = parsed.host
        port = parsed.port or _DEFAULT_PORTS[parsed.scheme]
        if parsed.scheme == "http" and not self.may_be_plain(host, port):
            raise ValueError(
                "Only https URLs are allowed unless the host is listed in MILLSTREAM_WEBHOOK_ALLOW"
            )
        address = literal(host)
        if address is not None and not self.allows(host, address, port):
            raise ValueError("Requests cannot be sent to this address")
        if port not in WEB_PORTS and not any(entry.allows_port(port) for entry in self.entries):
            raise ValueError(
                "Only ports 80 and 443 are allowed unless "
                "MILLSTREAM_WEBHOOK_ALLOW lists the host and port"
            )


_NOWHERE = ipaddress.IPv4Address(0)


def literal(host: str) -> Address | None:
    """Return the address that a URL's host is, in any notation that a resolver accepts.

    None for a name.
    """
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))  # 0x7f.1, 2130706433, 0177.0.0.1
    except (OSError, ValueError):
        return None


def parse_url(url: str) -> httpx.URL:
    """Parse a URL as the HTTP client that sends to it does, so that both see the same host.

    Raises ValueError with a reason that may be shown.
    """
    try:
        parsed = httpx.URL(url)
        host = parsed.host  # decodes an internationalized name, which may fail as well
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ValueError(f"Not a valid URL: {error}") from None
    if host and not _HOST_NAME.fullmatch(parsed.raw_host.decode()) and literal(host) is None:
        raise ValueError("Not a valid URL: invalid host name")
    return parsed


def _parse(url: str) -> httpx.URL:
    if len(url) > limits.WEBHOOK_URL_CHARACTERS_MAX:
        raise ValueError(f"A URL can have at most {limits.WEBHOOK_URL_CHARACTERS_MAX} characters")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("A URL must be printable ASCII; percent-encode other characters")
    parsed = parse_url(url)
    if parsed.scheme not in _DEFAULT_PORTS or not parsed.host or parsed.port == 0:
        raise ValueError("The URL must have the form https://host/path")
    if parsed.userinfo:
        raise ValueError("The URL cannot contain a user name or password; use a header")
    if parsed.fragment:
        raise ValueError("The URL cannot have a fragment")
    return parsed


def _entry(word: str) -> EgressRule:
    host, port = _without_port(word.strip())
    try:
        network: Network | None = ipaddress.ip_network(host, strict=False)
    except ValueError:
        network = None
    plain = host.replace("-", "").replace(".", "").replace("_", "")
    if network is None and not (plain.isascii() and plain.isalnum()):
        raise ValueError(f"{word!r} is not a host, address or network")
    return EgressRule(host.lower().rstrip("."), network, port)


def _without_port(word: str) -> tuple[str, int | None]:
    if word.startswith("["):
        host, _, rest = word[1:].partition("]")
        port = rest.removeprefix(":")
    elif word.count(":") == 1:
        host, _, port = word.partition(":")
    else:
        host, port = word, ""
    if not port:
        return host, None
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65_535:
        raise ValueError(f"{word!r} has no port")
    return host, int(port)
