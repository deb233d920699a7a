"""Egress rules of webhooks: public addresses in any spelling, and allowed hosts."""

import ipaddress

import pytest

from storage.domain.access.egress import Egress, is_public, literal
from storage.domain.errors import ValidationFailed

NOWHERE = Egress()

PRIVATE = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "203.0.113.5",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_not_public(address):
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111"])
def test_public_addresses_are_public(address):
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1%25eth0]",
    ],
)
def test_url_with_private_address_is_rejected_in_any_spelling(host):
    with pytest.raises(ValidationFailed) as refused:
        NOWHERE.check_url(f"https://{host}/hooks")

    assert refused.value.faults[0].pointer == "/url"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://example.com:8443/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https:///hooks",
        "https://user:word@example.com/",
        "https://example.com/#part",
        "https://example.com/a b",
        "https://exämple.com/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com/\r\nx: y",
        "hooks",
        "",
        "https://[::1/",
        "https://[v1.x]/",
        "https://8.8.8.999/hook",
        "https://010.8.8.8/",
        "https://999.1.1.1/",
        "https://xn--/",
        "https://example.com/" + "x" * 2048,
    ],
)
def test_invalid_webhook_url_is_rejected(url):
    with pytest.raises(ValidationFailed):
        NOWHERE.check_url(url)


def test_host_name_is_checked_when_resolved():
    NOWHERE.check_url("https://example.com/hooks?a=b")
    NOWHERE.check_url("https://localhost/hooks")

    assert not NOWHERE.allows("localhost", ipaddress.ip_address("127.0.0.1"), 443)
    assert NOWHERE.allows("example.com", ipaddress.ip_address("8.8.8.8"), 443)
    assert not NOWHERE.allows("example.com", ipaddress.ip_address("8.8.8.8"), 22)


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000/"),
        ("127.0.0.0/8", "http://127.0.0.2:9000/"),
        ("10.1.0.0/16:8080", "http://10.1.2.3:8080/"),
        ("[::1]", "http://[::1]:9000/"),
        ("[fd00::]:443", "https://[fd00::]/"),
        ("hooks.internal", "http://hooks.internal:9000/"),
        ("hooks.internal:80", "http://HOOKS.internal/"),
    ],
)
def test_allowed_host_is_accepted(word, url):
    Egress.of([word]).check_url(url)


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("127.0.0.1", "http://127.0.0.2:9000/"),
        ("10.1.0.0/16:8080", "http://10.1.2.3:8081/"),
        ("10.1.0.0/16:8080", "https://10.2.0.1:8080/"),
        ("hooks.internal:80", "http://hooks.internal:81/"),
        ("hooks.internal", "http://other.internal/"),
        ("127.0.0.1", "http://localhost/"),
    ],
)
def test_allow_rule_covers_nothing_else(word, url):
    with pytest.raises(ValidationFailed):
        Egress.of([word]).check_url(url)


def test_allowed_host_name_may_resolve_to_private_address():
    rule, inside = Egress.of(["hooks.internal"]), ipaddress.ip_address("10.0.0.1")

    assert rule.allows("hooks.internal", inside, 9000)
    assert not rule.allows("elsewhere.internal", inside, 9000)


@pytest.mark.parametrize("word", ["", "a b", "host:port", "host:0", "host:70000", "/8", "*"])
def test_malformed_allow_rule_is_rejected(word):
    with pytest.raises(ValueError, match=r"is not a host|has no port"):
        Egress.of([word])


def test_host_name_is_not_a_literal_address():
    assert literal("example.com") is None
    assert literal("localhost") is None
