"""Words before a verb: common options, plurals and aliases."""

import pytest

from api.cli.grammar.groups import ALIASES
from api.cli.main import app
from tests.cli_commands import CommandResult, millstream

NOWHERE = "http://127.0.0.1:9"
UNREACHABLE = f"millstream: Cannot reach {NOWHERE}"


@pytest.mark.parametrize(
    "words",
    [
        ("--url", NOWHERE, "queue", "ls"),
        ("queue", "--url", NOWHERE, "ls"),
        ("queue", "ls", "--url", NOWHERE),
        ("--url", "http://127.0.0.1:8", "queue", "ls", "--url", NOWHERE),
        ("--url", "http://127.0.0.1:8", "queue", "--url", NOWHERE, "-o", "json", "ls"),
        ("--retry", "0s", "--url", NOWHERE, "-q", "bench", "send"),
    ],
)
def test_common_option_is_taken_before_and_after_verb(words):
    result = millstream(*words)

    assert result.code == 4
    assert UNREACHABLE in result.err


def test_output_option_before_verb_applies(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    before = millstream("-o", "json", "config", "path")
    between = millstream("config", "-o", "json", "path")

    assert before.json == between.json == {"path": f"{tmp_path}/millstream/config.toml"}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--url", NOWHERE, "up"), "'up' has no option --url."),
        (("-o", "json", "migrate"), "'migrate' has no option --output."),
        (("-o", "xml", "queue", "ls"), "Invalid value for '--output'"),
        (("--limit", "1", "queue", "ls"), "No such option: --limit"),
    ],
)
def test_option_that_command_does_not_take_is_rejected(words, fault):
    result = millstream(*words)

    assert (result.code, result.out) == (2, "")
    assert fault in result.err


def test_completion_goes_on_after_option_that_command_does_not_take():
    context = app.make_context("millstream", ["--url", NOWHERE, "up"], resilient_parsing=True)

    name, command, rest = app.resolve_command(context, ["up", "--po"])

    assert (name, command, rest) == ("up", app.commands["up"], ["--po"])


@pytest.mark.parametrize(
    ("typed", "verb"),
    [
        (("queue", "list"), "queue ls"),
        (("queues", "list"), "queue ls"),
        (("queue", "get"), "queue show"),
        (("stream", "describe"), "stream show"),
        (("group", "delete"), "group rm"),
        (("queue", "update"), "queue change"),
        (("key", "delete"), "key revoke"),
        (("keys", "new"), "key create"),
    ],
)
def test_alias_is_taken_for_verb(typed, verb):
    assert f" {verb} " in millstream(*typed, "--help").out.splitlines()[0]


def test_aliases_are_neither_listed_nor_commands_of_their_own():
    help = millstream("queue", "--help").out
    listed = [line.split()[0] for line in help.splitlines() if line.startswith("  ")]

    assert "ls" in listed
    assert not set(listed) & set(ALIASES)
    assert "queues" not in app.commands


def test_unknown_verb_is_reported_with_suggestion():
    result = millstream("queue", "shwo")

    assert result == CommandResult(
        2, "", "millstream: No such command 'shwo'. Did you mean 'show'?\n"
    )
