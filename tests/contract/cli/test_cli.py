"""The command line against a service: input, output and exit codes."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from api.cli.command_tree import NounGroup
from api.cli.main import app
from api.cli.shell.completion import queue_names
from api.cli.shell.terminal import Terminal
from api.nouns import NOUNS
from tests.cli_commands import CommandResult, millstream

WORDS = tuple(noun.name for noun in NOUNS if noun.commands)
NAMES = ("orders", "mails", "retries", "clicks", "copies", "billing", "ledger", "again")
NAMES_OF_PAGE = ("errands", "steps", "copies", "walkers")
SHELL = """
set -euo pipefail
millstream() { "$PYTHON" -m api.cli "$@"; }
"""
END_S = 60.0
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
JQ = Path(__file__).parents[2] / "jq.py"


@pytest.fixture(autouse=True)
def at_the_service(service_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Configure the service by environment, without profiles."""
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def orders(name: str) -> str:
    """The name of a new queue."""
    assert millstream("queue", "create", name).code == 0
    return name


@pytest.fixture
def clicks(name: str) -> str:
    """The name of a new stream of two shards."""
    assert millstream("stream", "create", name, "--shards", "2").code == 0
    return name


def stats(client: httpx.Client, queue: str) -> dict[str, Any]:
    return dict(client.get(f"/v1/queues/{queue}/stats").json())


# ── Processes and sockets ──


def test_processes_and_sockets_are_listed_and_socket_is_closed(show_socket):
    show_socket("5b1f9c22e07a4d36")

    processes = millstream("process", "ls", "-o", "json").json
    sockets = millstream("socket", "ls", "-o", "json").json
    closed = millstream("socket", "close", "5b1f9c22e07a4d36")
    missing = millstream("socket", "close", "nothing")

    assert {"api"} == {one["role"] for one in processes}
    assert [one["principal"] for one in sockets if one["process"] == "walked"] == ["shop"]
    assert closed == CommandResult(0, "Closing socket 5b1f9c22e07a4d36.\n", "")
    assert missing.code == 3


# ── Queues ──


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


# ── Streams ──


def test_records_are_put_and_read_in_every_format(clicks):
    put = millstream("stream", "put", clicks, "--key", "k", stdin=b"a\nb\n")
    values = millstream("stream", "put", clicks, "--json", "--key-field", "k", stdin=b'{"k":"k"}')

    read = millstream("stream", "read", clicks)
    result = millstream("stream", "read", clicks, "-o", "ndjson")
    again = millstream("stream", "put", clicks, "--records", stdin=result.out.encode())

    assert put.out == f"2 appended to stream {clicks}.\n"
    assert values.code == 0
    assert read.out == 'a\nb\n{"k":"k"}\n'
    assert [(line["data"], line["key"]) for line in result.lines] == [
        ("a", "k"),
        ("b", "k"),
        ({"k": "k"}, "k"),
    ]
    assert again.out == f"3 appended to stream {clicks}.\n"
    last = millstream("stream", "tail", clicks, "-n", "1", "-o", "json").json
    assert last[0]["data"] == {"k": "k"}


def test_invalid_line_is_reported_after_earlier_ones_are_put(clicks):
    put = millstream("stream", "put", clicks, "--json", stdin=b"1\n2\n{\n4\n")

    assert put.code == 5
    assert put.err.startswith("millstream: 2 were accepted, then: line 3: invalid JSON")
    assert millstream("stream", "read", clicks).out == "1\n2\n"


def test_offset_requires_shard(clicks):
    millstream("stream", "put", clicks, "a", "b", "c", "--key", "k")
    [first] = millstream("stream", "read", clicks, "-n", "1", "-o", "json").json
    shard = str(first["shard"])

    whose = millstream("stream", "read", clicks, "--from", "1")
    read = millstream(
        "stream", "read", clicks, "--from", "1", "--shard", shard, "-n", "1", "--long"
    )

    assert whose.code == 2
    assert "specify the offset's shard with --shard" in whose.err
    assert re.fullmatch(rf"\S+ {shard}:1 k b\n", read.out)
    assert millstream("stream", "read", clicks, "--from", "1h").out == "a\nb\nc\n"
    assert millstream("stream", "read", clicks, "--from", "latest").out == ""
    assert millstream("stream", "tail", clicks, "--shard", "9").code == 3


def test_read_and_tail_print_records_that_match(clicks):
    values = [str(number) for number in range(1_205)]
    millstream("stream", "put", clicks, "--key", "k", stdin="\n".join(values).encode())
    millstream("stream", "put", clicks, "--json", stdin=b'{"n": 1}\n{"n": 2}\n')
    millstream("stream", "put", clicks, "--key", "bytes", stdin=b"\xff")
    thousands = ("--where", "body % 1000 = 0")

    read = millstream("stream", "read", clicks, *thousands)
    limited = millstream("stream", "read", clicks, *thousands, "-n", "1", "-o", "ndjson")
    filtered = millstream("stream", "read", clicks, "--filter", '{"body": {"n": [2]}}')
    binary = millstream("stream", "read", clicks, "--filter", '{"key": ["bytes"]}', "-o", "json")
    tail = millstream("stream", "tail", clicks, "--where", "body.n = 1", "-n", "5")
    no_subject = millstream("stream", "read", clicks, "--subject", "order.*")
    invalid = millstream("stream", "read", clicks, "--where", "body >")
    no_json = millstream("stream", "tail", clicks, "--filter", "{")

    assert read.out == "0\n1000\n"
    assert [(line["data"], line["key"]) for line in limited.lines] == [("0", "k")]
    assert filtered.out == tail.out.replace("1", "2") == '{"n":2}\n'
    assert binary.json[0]["data_base64"] == "/w=="
    assert (no_subject.out, no_subject.code) == ("", 0)
    assert (invalid.code, "/match/where" in invalid.err) == (2, True)
    assert (no_json.code, "--filter is not JSON" in no_json.err) == (2, True)


def test_split_divides_recent_records(clicks):
    for number in range(8):
        millstream("stream", "put", clicks, "x", "--key", f"user-{number}")
    loads = millstream("stream", "load", clicks, "-o", "json").json
    busy = max(loads, key=lambda load: load["sampled"])

    assert busy["split"]["larger_share"] < 0.8
    assert "user-" in millstream("stream", "load", clicks).out
    assert "3 open shards" in reshard_by_load(clicks, busy["shard"]).out


def test_hot_key_is_not_split(clicks):
    for _ in range(3):
        millstream("stream", "put", clicks, "x", "--key", "tenant-7")
    loads = millstream("stream", "load", clicks, "-o", "json").json
    [hot, idle] = sorted(loads, key=lambda load: -load["sampled"])

    assert "has one hot key" in reshard_by_load(clicks, hot["shard"]).err
    assert "has no recent records" in reshard_by_load(clicks, idle["shard"]).err


@pytest.mark.parametrize("options", [("--at", "load"), ("--split", "0", "--at", "half")])
def test_invalid_split_point_is_refused(clicks, options):
    assert millstream("stream", "reshard", clicks, *options).code == 2


def reshard_by_load(stream, shard):
    return millstream("stream", "reshard", stream, "--split", str(shard), "--at", "load")


def test_stream_is_resharded(clicks):
    assert millstream("stream", "reshard", clicks).code == 2
    assert "4 open shards" in millstream("stream", "reshard", clicks, "--shards", "4").out
    shown = millstream("stream", "show", clicks, "-o", "json").json
    assert [shard["open"] for shard in shown["shard_list"]] == [False] * 2 + [True] * 4


# ── Groups ──


def test_group_reset_requires_confirmation(clicks):
    millstream("stream", "put", clicks, "a", "b", "c", "--key", "k")
    millstream("group", "create", clicks, clicks)

    lag = millstream("group", "lag", clicks, "-o", "json").json
    plan = millstream("group", "reset", clicks, "--to", "latest", "--dry-run", "-o", "json").json
    asked = millstream("group", "reset", clicks, "--to", "latest")
    done = millstream("group", "reset", clicks, "--to", "latest", "--yes", "-o", "json").json

    assert lag["records"] == 3
    assert plan["dry_run"] is True
    assert (asked.code, "in 2 shards" in asked.err) == (2, True)
    assert sorted(shard["after"] for shard in done["shards"]) == [0, 3]
    assert millstream("group", "lag", clicks, "-o", "json").json["records"] == 0


# ── Errors and exit codes ──


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


@pytest.mark.parametrize(("typed", "code"), [("{name}\n", 0), ("else\n", 1), ("\n", 1), ("", 130)])
def test_terminal_user_must_type_name(orders, client, monkeypatch, typed, code):
    monkeypatch.setattr(Terminal, "is_for_a_person", True)
    millstream("queue", "send", orders, "a")

    ran = millstream("queue", "purge", orders, stdin=typed.format(name=orders).encode())

    assert ran.code == code
    assert f"1 messages of queue {orders} will be permanently deleted." in ran.err
    assert stats(client, orders)["ready"] == (0 if code == 0 else 1)


def test_shell_completes_names_and_nothing_when_unreachable(orders, service_url):
    namespace = SimpleNamespace(params={"url": service_url})
    nobody = SimpleNamespace(params={"url": "http://127.0.0.1:1"})

    assert queue_names(namespace, orders[:-1]).count(orders) == 1
    assert queue_names(nobody, "") == []


def test_shell_completes_names_of_service_named_before_the_verb(orders, service_url, monkeypatch):
    """A name completes at the service of --url, wherever that stands, also after an alias."""
    monkeypatch.delenv("MILLSTREAM_URL")
    words = f"millstream --url {service_url} queue get {orders}"
    completion = {"COMP_WORDS": words, "COMP_CWORD": "5", "_MILLSTREAM_COMPLETE": "complete_bash"}

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'millstream'\nfrom api.cli.main import main; main()",
        ],
        env={**os.environ, **completion},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == [orders]


# ── Shells and pipes ──


def bash(script: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in which `millstream` is the tested command."""
    return subprocess.run(
        ["bash", "-c", SHELL + script],
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
        env={**os.environ, "PYTHON": sys.executable},
        **more,
    )


def test_closed_pipe_ends_receive_quietly_without_loss(orders, client):
    """`head` prints one line; the message whose line could not be written is released."""
    millstream("queue", "send", orders, "-", stdin=b"1\n2\n3\n")

    ran = bash(
        f"set +o pipefail; millstream queue receive --follow {orders} | head -1; echo ${{PIPESTATUS[*]}}"
    )

    assert (ran.stdout, ran.stderr) == ("1\n141 0\n", "")
    cached_stats = stats(client, orders)
    assert (cached_stats["ready"], cached_stats["in_flight"], cached_stats["acknowledged"]) == (
        2,
        0,
        1,
    )


def test_closed_pipe_is_noticed_while_idle(orders):
    """One message is written; no second write ever shows that the reader has left."""
    millstream("queue", "send", orders, "1")

    ran = bash(
        "set +o pipefail; "
        f"millstream queue receive --follow {orders} | head -1; echo ${{PIPESTATUS[*]}}"
    )

    assert (ran.stdout, ran.stderr) == ("1\n141 0\n", "")


def _with_interrupts() -> None:
    """Let SIGINT end the process, also where the tests run in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_tail_quietly(clicks, number, code):
    millstream("stream", "put", clicks, "a")
    command = [sys.executable, "-m", "api.cli", "stream", "tail", "-f", clicks]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_with_interrupts,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a\n"
        time.sleep(0.3)  # so that it follows
        process.send_signal(number)

        assert process.wait(END_S) == code
        assert process.stderr.read() == b""


# ── Examples of the help ──


def group_of(word: str) -> dict[str, Any]:
    """Commands of a noun by verb."""
    noun = app.commands[word]
    assert isinstance(noun, NounGroup)
    return noun.commands


REFUSED = {
    f"store {verb}" for verb in ("switch-over", "replace", "add", "remove", "min-insync", "recover")
}
"""Verbs that a deployment with one store refuses; the tests of replicated stores run them."""


def verbs() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Collect each verb and its examples in the order of the help; deletions last."""
    last = []
    groups = {word: group_of(word) for word in WORDS} | {"": {"bench": app.commands["bench"]}}
    for word, group in groups.items():
        for name, command in group.items():
            examples = tuple(getattr(command.callback, "examples", ()))
            if name == "rm":
                last.append((f"{word} {name}", examples))
            elif examples and f"{word} {name}" not in REFUSED:
                yield f"{word} {name}", examples
    yield from last[::-1]  # groups go before their streams


def renamed(text: str, suffix: str, names: Sequence[str] = NAMES) -> str:
    """Replace names by names of this test's own."""
    return re.sub(rf"\b({'|'.join(names)})\b", rf"\1-{suffix}", text)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A working directory with a secret, and an editor; where jq is missing, with a replacement."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDITOR", "true")
    (tmp_path / "github.secret").write_text("It's a Secret to Everybody\n")
    (tmp_path / "eu.key").write_text("ms_a-key-of-the-origin\n")
    client = {"token_url": "https://id.example/token", "client_id": "shop", "client_secret": "s"}
    (tmp_path / "oauth.json").write_text(json.dumps({"oauth": client}))
    if shutil.which("jq") is None:
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin" / "jq"
        program.write_text(f"#!{sys.executable}\n{JQ.read_text()}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.mark.usefixtures("folder")
def test_help_examples_run_in_order(name):
    run = 0
    for verb, examples in verbs():
        run += len(examples)
        _run(verb, [renamed(example, name) for example in examples])

    assert run > 40


def _run(verb: str, examples: list[str]) -> str:
    """Run lines and return their outputs.

    Plain lines run in this process, which is fast; where a line needs another's output, all run in
    one shell.
    """
    if any("=$(" in example for example in examples):
        examples = ["\n".join(examples)]
    return "".join(_runs(verb, example) for example in examples)


def _runs(verb: str, example: str) -> str:
    stages = piped(example)
    if stages is None or "--follow" in example or "timeout" in example:
        ran = bash(example.replace("| head -1", "| head -1 || true"))
        assert ran.returncode == 0, (verb, example, ran.stdout, ran.stderr)
        return ran.stdout
    said = ""
    for program, *words in stages:
        if program == "millstream":
            code, said, err = millstream(*words, stdin=said.encode())
        else:
            done = subprocess.run([program, *words], input=said, capture_output=True, text=True)
            code, said, err = done.returncode, done.stdout, done.stderr
        assert code == 0, (verb, example, err)
    return said


def piped(example: str) -> list[list[str]] | None:
    """Split commands that are piped into each other; None where a shell is needed."""
    lexer = shlex.shlex(example, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    if any("$" in word or set(word) <= set("|<>&;()") for word in words if word not in ("", "|")):
        return None
    return [
        list(stage) for is_pipe, stage in groupby(words, lambda word: word == "|") if not is_pipe
    ]


@pytest.mark.usefixtures("folder")
def test_reference_page_runs(name):
    """Run every command of docs/reference/cli.md, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)

    output = "".join(
        _run("page", renamed(block, name, NAMES_OF_PAGE).splitlines()) for block in blocks
    )

    assert "hello" in output
    assert "p99 ms" in output


def test_every_verb_is_on_reference_page():
    page = PAGE.read_text()
    for word in WORDS:
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{word}` |")]

        assert set(group_of(word)) == set(re.findall(r"`(\S+)`", row)[1:])


def test_deliveries_are_counted_and_resent_by_filter(orders, client, name, log_delivery):
    hook = {"source": f"queue:{orders}", "url": "http://127.0.0.1:9/", "enabled": False}
    client.put(f"/v1/webhooks/{name}", json=hook)
    log_delivery(name, "event-1")
    resend = ("webhook", "resend", name)

    counted = millstream(*resend, "--status", "delivered", "--dry-run", "-o", "json").json
    unconfirmed = millstream(*resend, "--status", "delivered")
    failed = millstream(*resend, "--status", "delivered", "--until", "1s", "--yes")
    both = millstream(*resend, "event-1", "--status", "delivered")

    assert counted == {"matched": 1}
    assert [done.code for done in (unconfirmed, failed, both)] == [2, 1, 2]
    assert "1 delivery of" in unconfirmed.err
    assert "Delivered 0, failed 1, skipped 0." in failed.err
    assert "give a delivery id, or options" in both.err
