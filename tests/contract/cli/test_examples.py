"""Examples of every help, and of docs/reference/cli.md."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from api.cli.command_tree import NounGroup
from api.cli.main import app
from api.nouns import NOUNS
from spark_worker import environment
from tests.cli_commands import millstream
from tests.contract.cli.shells import bash

pytestmark = pytest.mark.usefixtures("at_the_service")

WORDS = tuple(noun.name for noun in NOUNS if noun.commands)
NAMES = ("orders", "mails", "retries", "clicks", "copies", "billing", "ledger", "crm", "again")
NAMES_OF_PAGE = ("errands", "steps", "copies", "walkers")
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
JQ = Path(__file__).parents[2] / "jq.py"


def group_of(word: str) -> dict[str, Any]:
    """Commands of a noun by verb."""
    noun = app.commands[word]
    assert isinstance(noun, NounGroup)
    return noun.commands


REFUSED = {
    f"store {verb}" for verb in ("switch-over", "replace", "add", "remove", "min-insync", "recover")
} | {"view rollback"}
"""Verbs that need several stores, or a former revision; other tests run them."""


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
    monkeypatch.setattr(environment, "COMPRESS_LEVEL", 1)  # 6 takes half of the examples' time
    (tmp_path / "github.secret").write_text("It's a Secret to Everybody\n")
    (tmp_path / "visits.sql").write_text(
        "select page, count(*) as visits from records group by page"
    )
    (tmp_path / "eu.key").write_text("ms_a-key-of-the-origin\n")
    client = {"token_url": "https://id.example/token", "client_id": "shop", "client_secret": "s"}
    (tmp_path / "oauth.json").write_text(json.dumps({"oauth": client}))
    if shutil.which("jq") is None:
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin" / "jq"
        program.write_text(f"#!{sys.executable}\n{JQ.read_text()}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.mark.usefixtures("folder", "view_worker")
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
