"""Help of every command at 80 columns."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from api.cli.command_tree import RootGroup
from api.cli.grammar.help import with_examples
from api.cli.main import app
from tests.cli_commands import millstream

COLUMNS = 80
SUMMARY_MAX = 45
TYPES = re.compile(r"<\w|range>|StreamPosition|default: None")


def commands(group: Any = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group below a group, with its path."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        if not command.hidden:
            yield from commands(command, (*path, name))


COMMANDS = list(commands())
each_command = pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


@each_command
def test_help_is_whole_at_80_columns(path):
    help = millstream(*path, "--help").out

    assert help.startswith("Usage:")
    assert max(map(len, help.splitlines())) <= COLUMNS
    assert re.search(r"[^A-Z\]]\.\.\.|…", help) is None  # NAMES... is a usage


@each_command
def test_help_names_values_rather_than_types(path):
    assert TYPES.search(millstream(*path, "--help").out.split("Options:")[-1]) is None


@pytest.mark.parametrize(
    ("path", "command"), COMMANDS, ids=[" ".join(path) for path, _ in COMMANDS]
)
def test_summary_of_command_is_a_short_sentence(path, command):
    summary = command.get_short_help_str()

    assert summary.endswith(".")
    assert len(summary) <= SUMMARY_MAX


def test_connection_is_last_section_of_help():
    help = millstream("queue", "create", "--help").out
    own, _, connection = help.partition("\n\nConnection:\n")

    assert "--fifo" in own
    assert "-o, --output" in own
    assert re.findall(r"--[a-z-]+ [A-Z]+", connection) == [
        "--url URL",
        "--api-key KEY",
        "--ca-file FILE",
        "--profile NAME",
        "--retry DURATION",
    ]


def test_help_of_noun_has_no_connection():
    assert "--url" not in millstream("queue", "--help").out


def test_every_command_has_one_heading():
    visible = {name for name, command in app.commands.items() if not command.hidden}

    assert set(RootGroup.headings) == visible


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["bench"], "WHAT  Operation to measure. [send, receive, put, read, end-to-end]"),
        (["bench"], "--for DURATION Duration of the measurement. [default: 10s]"),
        (["bench"], "--size N Size of a message or record, in bytes. [default: 256; at least 16]"),
        (["stream", "read"], "or an offset. [default: earliest]"),
        (["stream", "reshard"], "--merge N N Merge these two adjacent shards."),
        (["queue", "rm"], "queue rm NAMES... [OPTIONS]"),
        (["stream", "put"], "stream put NAME [DATA...] [OPTIONS]"),
    ],
)
def test_help_shows_usage_default_and_bounds(words, line):
    help = " ".join(millstream(*words, "--help").out.split())

    assert " ".join(line.split()) in help


def test_long_example_is_folded_before_an_option():
    example = f"millstream bench {'x' * 50} --rate 20 --for 1s"

    assert with_examples("Bench.", [example]).splitlines()[-2:] == [
        f"  millstream bench {'x' * 50} \\",
        "    --rate 20 --for 1s",
    ]
