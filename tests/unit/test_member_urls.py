"""Addresses and URLs of the members of a replica set."""

import pytest

from storage.domain.replication.member_urls import (
    host_and_port,
    join_address,
    member_addresses,
    member_url,
    normalize_address,
    zones_by_address,
)

URL = "redis://:se,cr%40et@h1:6379,H2:6380,h3/0?opt=1"


def test_addresses_keep_their_order_and_get_the_default_port():
    assert member_addresses(URL) == ("h1:6379", "h2:6380", "h3:6379")


def test_single_host_is_one_address():
    assert member_addresses("redis://localhost") == ("localhost:6379",)


def test_ipv6_addresses_stay_in_brackets():
    addresses = member_addresses("rediss://u:p@[fd00:0::1]:7000,[fd00::2]/0")

    assert addresses == ("[fd00::1]:7000", "[fd00::2]:6379")
    assert [host_and_port(address) for address in addresses] == [
        ("fd00::1", 7000),
        ("fd00::2", 6379),
    ]


def test_member_url_keeps_password_database_and_options():
    assert member_url(URL, "h2:6380") == "redis://:se,cr%40et@h2:6380/0?opt=1"


def test_member_url_keeps_tls():
    assert member_url("rediss://h1,h2", "[fd00::2]") == "rediss://[fd00::2]:6379"


@pytest.mark.parametrize(
    "url", ["redis://h1,h1:6379/0", "redis://A:1,a:1", "redis://[fd00::1],[fd00:0::1]"]
)
def test_duplicate_address_is_refused(url):
    with pytest.raises(ValueError, match="listed twice"):
        member_addresses(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis://",
        "redis://h1,,h2",
        "redis://h1:0",
        "redis://h1:65536",
        "redis://h1:port",
        "redis://h 1",
        "redis://[fd00::1",
        "redis://[fd00::zz]",
        "unix:///tmp/valkey.sock",
        "http://h1",
        "redis://h1#fragment",
    ],
)
def test_invalid_url_is_refused(url):
    with pytest.raises(ValueError, match=r"."):
        member_addresses(url)


@pytest.mark.parametrize("url", ["redis://:secret@h1#x", "redis://:secret/@h1", "redis://:secret"])
def test_refusal_does_not_repeat_the_password(url):
    with pytest.raises(ValueError, match="cannot be parsed") as error:
        member_addresses(url)

    assert "secret" not in str(error.value)


def test_reported_host_and_port_are_joined_to_an_address():
    assert join_address("fd00::1", 7000) == normalize_address("[fd00::1]:7000")
    assert join_address("10.0.0.1", 7000) == "10.0.0.1:7000"


def test_zones_are_named_by_normalized_address():
    assert zones_by_address("Store-1=a, [fd00:0::1]:7000=b,") == {
        "store-1:6379": "a",
        "[fd00::1]:7000": "b",
    }
    assert zones_by_address("") == {}


@pytest.mark.parametrize("text", ["store-1:6379", "store-1=", "=a", "s=a,s:6379=b", "a b=c"])
def test_invalid_zones_are_refused(text):
    with pytest.raises(ValueError, match=r"host:port|twice"):
        zones_by_address(text)
