"""`millstream queue`: messages, configuration, lists and confirmations."""

import re
from typing import Any

import httpx
import pytest

from api.cli.shell.terminal import Terminal
from tests.cli_commands import CommandResult, millstream

pytestmark = pytest.mark.usefixtures("at_the_service")


def stats(client: httpx.Client, queue: str) -> dict[str, Any]:
    return dict(client.get(f"/v1/queues/{queue}/stats").json())


def test_message_is_sent_received_and_acknowledged(orders, client):
    sent = millstream("queue", "send", orders, "hello", "-o", "json").json
    received = millstream("queue", "receive", orders)

    assert [message["offset"] for message in sent] == [0]
    assert received == CommandResult(0, "hello\n", "")
    assert stats(client, orders)["acknowledged"] == 1


def test_stdin_is_sent_by_line_or_whole(orders):
    lines = millstream("queue", "send", orders, "-", stdin=b"a\nb\n")
    whole = millstream("queue", "send", orders, "-", "--whole", stdin=b"c\nd\n")

    received_lines = millstream("queue", "receive", orders, "-n", "9", "-o", "ndjson").lines
    assert lines.out == f"2 sent to queue {orders}.\n"
    assert whole.code == 0
    assert [received_line["body"] for received_line in received_lines] == ["a", "b", "c\nd\n"]


def test_kept_message_is_settled_by_its_handle(orders):
    millstream("queue", "send", orders, '{"a":1}', "--json", "--header", "trace=x")
    [kept] = millstream("queue", "receive", orders, "--keep", "-o", "json").json
    assert (kept["body"], kept["headers"]) == ({"a": 1}, {"trace": "x"})

    both = millstream("queue", "ack", orders, kept["receipt_handle"], "none", "-o", "json")
    alone = millstream("queue", "ack", orders, "none")

    assert [one["status"] for one in both.json] == ["settled", "refused"]
    assert (both.code, alone.code) == (5, 1)
    assert "1 of 2 were rejected" in both.err


def test_messages_are_filtered_by_field_header_and_time(orders):
    millstream("queue", "send", orders, '{"n": 1}', "--json", "--header", "source=web")
    millstream("queue", "send", orders, '{"n": 2}', "--json")

    def offsets(*options: str) -> list[int]:
        return [one["offset"] for one in millstream(*options, "-o", "json").json]

    peek = ("queue", "peek", orders)
    assert offsets(*peek, "--where", "/n=2") == [1]
    assert offsets(*peek, "--header", "source:web", "--since", "1h") == [0]
    assert offsets(*peek, "--until", "1h") == []
    assert offsets("queue", "dead-letters", orders, "--reason", "no", "--where", "/n=2") == []


def test_rejected_message_is_listed_and_redriven(orders):
    millstream("queue", "send", orders, "bad")
    [kept] = millstream("queue", "receive", orders, "--keep", "-o", "json").json
    millstream(
        "queue", "settle", orders, kept["receipt_handle"], "--as", "reject", "--reason", "no"
    )

    letters = millstream("queue", "dead-letters", orders).out.splitlines()
    reasons = millstream("queue", "dead-letters", orders, "--reasons", "-o", "json").json
    redriven = millstream("queue", "redrive", orders, "-o", "json").json
    peeked = millstream("queue", "peek", orders, "-o", "json").json

    assert "bad" in letters[1]
    assert [one["count"] for one in reasons] == [1]
    assert redriven == {"redriven": 1}
    assert [one["state"] for one in peeked] == ["ready"]


def test_destructive_command_asks_for_confirmation(orders, client):
    millstream("queue", "send", orders, "a", "b")

    asked = millstream("queue", "purge", orders)
    done = millstream("queue", "purge", orders, "--yes", "-o", "json")

    assert asked.code == 2
    assert asked.err == (
        f"millstream: 2 messages of queue {orders} will be permanently deleted. Pass --yes to confirm.\n"
    )
    assert done.json == {"purged": 2}
    assert millstream("queue", "rm", orders).code == 2
    assert millstream("queue", "rm", orders, "-y").code == 0
    assert client.get(f"/v1/queues/{orders}").status_code == 404


def test_configuration_is_set_by_options_and_by_field(name):
    made = millstream(
        "queue",
        "create",
        name,
        "--fifo",
        "--visibility",
        "2m",
        "--partitions",
        "4",
        "--set",
        "dedup_scope=group",
        "--set",
        'tags={"a":"b"}',
        "-o",
        "json",
    ).json
    changed = millstream("queue", "change", name, "--set", "attempts_max=4", "-o", "json").json
    shown = millstream("queue", "show", name, "-o", "json").json

    assert (made["type"], made["visibility_timeout_seconds"]) == ("fifo", 120)
    assert made["tags"] == {"a": "b"}
    assert changed["partitions"] == 4
    assert changed["attempts_max"] == 4
    assert shown["stats"]["ready"] == 0
    assert millstream("queue", "create", name, "--new").code == 1


def test_create_compares_and_apply_replaces(name):
    """`queue create` without options set everything of an existing queue to its default."""
    first = millstream("queue", "create", name, "--attempts", "7")
    millstream("queue", "pause", name)

    bare = millstream("queue", "create", name)
    refused = millstream("queue", "create", name, "--attempts", "3")
    planned = millstream("queue", "apply", name, "--attempts", "3", "--dry-run")
    applied = millstream("queue", "apply", name, "--attempts", "3")
    again = millstream("queue", "apply", name, "--attempts", "3")
    shown = millstream("queue", "show", name, "-o", "json").json
    resumed = millstream("queue", "resume", name)

    assert first.out == f"Queue {name} created.\n"
    assert bare.out == f"Queue {name} already exists with these settings.\n"
    assert (refused.code, "attempts_max is 7, not 3" in refused.err) == (1, True)
    assert planned.out == f"Queue {name} would be updated: attempts_max 7 → 3.\n"
    assert applied.out == f"Queue {name} updated: attempts_max 7 → 3.\n"
    assert again.out == f"Queue {name} unchanged.\n"
    assert (shown["attempts_max"], shown["paused"]) == (3, True)
    assert resumed.out == f"Queue {name} resumed.\n"


def test_lists_are_tables_names_or_json(orders):
    result = millstream("queue", "ls", "--prefix", orders)
    names = millstream("queue", "ls", "--prefix", orders, "-q")
    values = millstream("queue", "ls", "--prefix", orders, "-o", "ndjson")

    assert re.split(r"  +", result.out.splitlines()[0]) == [
        "name",
        "type",
        "ready",
        "in flight",
        "delayed",
        "parked",
        "dead letters",
        "oldest",
        "consumers",
        "sent/s",
        "acked/s",
        "paused",
    ]
    assert names.out.splitlines()[0] == orders
    assert values.lines[0]["name"] == orders
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", values.lines[0]["created_at"])


@pytest.mark.parametrize(("typed", "code"), [("{name}\n", 0), ("else\n", 1), ("\n", 1), ("", 130)])
def test_terminal_user_must_type_name(orders, client, monkeypatch, typed, code):
    monkeypatch.setattr(Terminal, "is_for_a_person", True)
    millstream("queue", "send", orders, "a")

    ran = millstream("queue", "purge", orders, stdin=typed.format(name=orders).encode())

    assert ran.code == code
    assert f"1 messages of queue {orders} will be permanently deleted." in ran.err
    assert stats(client, orders)["ready"] == (0 if code == 0 else 1)
