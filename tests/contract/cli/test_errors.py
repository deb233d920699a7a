"""Errors of the command line, and its exit codes."""

import pytest

from tests.cli_commands import CommandResult, millstream

pytestmark = pytest.mark.usefixtures("at_the_service")


def test_unknown_name_is_reported_with_hint():
    ran = millstream("queue", "show", "nowhere")

    assert ran == CommandResult(
        3,
        "",
        "millstream: Queue 'nowhere' does not exist. (queue_not_found) `millstream queue ls` lists existing queues.\n",
    )


def test_unreachable_service_is_reported_with_hint():
    ran = millstream("queue", "ls", "--url", "http://127.0.0.1:1")

    assert ran.code == 4
    assert ran.err.count("\n") == 1
    assert "Start one with `millstream up`" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["queue", "ls", "--bogus"], "No such option: --bogus"),
        (["queue", "create", "a", "--delay", "soon"], "'soon' is not a duration: use 30s"),
        (["queue", "create", "a", "--set", "x"], "'x' is not a setting: use name=value"),
        (["queue", "create", "a b"], "/name: A name must be 1 to 80"),
        (["queue", "create", "a", "--set", "delay_second=1"], "delay_second"),
        (["stream", "read", "a", "--from", "noon"], "'noon' is not a position"),
        (["group", "reset", "a", "--to", "0=x"], "'0=x' are not offsets"),
        (["replay", "start", "a"], "specify one of --to-stream and --to-queue"),
        (["queue", "ls", "--profile", "x"], "unknown profile 'x'"),
    ],
)
def test_usage_error_is_one_line_with_exit_code_2(words, said):
    ran = millstream(*words)

    assert ran.code == 2, ran
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_noun_without_verb_lists_its_verbs():
    ran = millstream("queue")

    assert ran.code == 2
    assert "dead-letters" in ran.err
