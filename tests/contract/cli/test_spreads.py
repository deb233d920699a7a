"""`millstream route --spread`: routes to spreads, and the members that reports name."""

import pytest

from api.cli.io.spread_members import parse_member, show_member, show_members
from tests.cli_commands import millstream


@pytest.fixture
def topic(service_url, name, monkeypatch) -> str:
    """Create a topic; return its name."""
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    assert millstream("topic", "create", f"fleet-{name}").code == 0
    return f"fleet-{name}"


def test_route_to_spread_is_created_and_shown(topic):
    members = ("--spread", "queue:worker-1=2", "--spread", "stream:log")

    made = millstream("route", "create", f"{topic}/work", *members, "--by", "subject")
    shown = millstream("route", "show", f"{topic}/work", "-o", "json")
    listed = millstream("route", "ls", topic)

    assert made.code == 0, made.err
    target = shown.json["target"]
    assert target["by"] == "subject"
    assert target["spread"] == [{"queue": "worker-1", "weight": 2}, {"stream": "log", "weight": 1}]
    assert "queue:worker-1=2, stream:log" in listed.out


def test_explanation_shows_the_member(topic):
    members = ("--spread", "queue:worker-1", "--spread", "queue:worker-2")
    millstream("route", "create", f"{topic}/work", *members)

    explained = millstream("topic", "explain", topic, "hello", "--key", "c7")

    assert explained.code == 0, explained.err
    assert "queue:worker-" in explained.out


@pytest.mark.parametrize("member", ["worker-1", "queue:", "url:a", "queue:a=", "queue:a=many"])
def test_invalid_member_is_refused(topic, member):
    refused = millstream("route", "create", f"{topic}/work", "--spread", member)

    assert refused.code == 2
    assert "is not a member" in refused.err


@pytest.mark.parametrize("text", ["queue:a", "stream:a=7", "topic:eu.orders=2"])
def test_member_is_shown_as_it_is_parsed(text):
    assert show_member(parse_member(text)) == text
    assert show_members([parse_member(text)] * 2) == f"{text}, {text}"
