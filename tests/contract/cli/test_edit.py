"""`edit` of definitions with editors that are scripts."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from api.cli.shell.terminal import Terminal
from tests.cli_commands import CommandResult, millstream

Edit = Callable[..., CommandResult]


@pytest.fixture(autouse=True)
def at_the_service(service_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Configure the service by environment, and keep texts that are left below the test's folder."""
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def orders(name: str) -> str:
    """The name of a new queue."""
    assert millstream("queue", "create", name).code == 0
    return name


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Edit:
    """Edit an object, with a shell script as the editor whose $1 is the file."""

    def edit(noun: str, name: str, script: str, *words: str) -> CommandResult:
        editor = tmp_path / "editor.sh"
        editor.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/seen\n{script}\n')
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("EDITOR", str(editor))
        return millstream(noun, "edit", name, *words)

    return edit


def replacing(before: str, after: str) -> str:
    return f"sed -i 's/{before}.*/{after}/' \"$1\""


def left_texts(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("millstream-*.yaml"))


def test_edited_settings_are_shown_and_stored(orders, edit, client, tmp_path):
    done = edit("queue", orders, replacing("attempts_max:", "attempts_max: 7"))

    assert done == CommandResult(0, f"Updated queue {orders}.\n", "/attempts_max: 10 -> 7\n")
    assert client.get(f"/v1/queues/{orders}").json()["attempts_max"] == 7
    assert "visibility_timeout_seconds: 30\n" in (tmp_path / "seen").read_text()
    assert left_texts(tmp_path) == []


@pytest.mark.parametrize("script", ["", 'echo "#: note" >> "$1"'])
def test_unchanged_settings_are_not_stored(orders, edit, client, script, tmp_path):
    done = edit("queue", orders, script)

    assert (done.code, done.out) == (0, f"Queue {orders} was not changed.\n")
    assert client.get(f"/v1/queues/{orders}").json()["version"] == 1
    assert left_texts(tmp_path) == []


def test_change_of_someone_else_is_not_overwritten(orders, edit, client, tmp_path, service_url):
    other = f"curl -sX PATCH {service_url}/v1/queues/{orders} --json '{{\"attempts_max\": 9}}' > /dev/null"
    script = f"{other}\n{replacing('delay_seconds:', 'delay_seconds: 5')}"

    done = edit("queue", orders, script)

    [text] = left_texts(tmp_path)
    assert done.code == 1
    assert "changed by someone else" in done.err
    assert str(text) in done.err
    assert "delay_seconds: 5" in text.read_text()
    stored = client.get(f"/v1/queues/{orders}").json()
    assert (stored["attempts_max"], stored["delay_seconds"]) == (9, 0)


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (replacing("attempts_max:", "attempt_max: 7"), ":11:1: queue {}: Unknown field"),
        (replacing("attempts_max:", "attempts_max: ["), ":13:14: "),
        (replacing("attempts_max:", "delay_seconds: 1"), ":11:1: 'delay_seconds' occurs twice"),
        ('echo "[]" > "$1"', ":1:1: the settings are one mapping"),
    ],
)
def test_invalid_settings_are_reported_with_their_place(orders, edit, script, fault, tmp_path):
    done = edit("queue", orders, script)

    [text] = left_texts(tmp_path)
    assert done.code == 2
    assert f"{text}{fault.format(orders)}" in done.err
    assert f"Your text is in {text}." in done.err


def test_person_corrects_invalid_settings(orders, edit, client, tmp_path, monkeypatch):
    monkeypatch.setattr(Terminal, "is_for_a_person", True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    first = replacing("attempts_max:", "attempts_max: many")
    then = replacing("attempts_max: many", "attempts_max: 3")

    done = edit("queue", orders, f'if grep -q many "$1"; then {then}; else {first}; fi')

    notes = [line for line in (tmp_path / "seen").read_text().splitlines() if line[:2] == "#:"]
    assert done.code == 0, done.err
    assert "attempts_max" not in notes[0]
    assert f"queue {orders}: Input should be a valid integer" in notes[0]
    assert client.get(f"/v1/queues/{orders}").json()["attempts_max"] == 3


def test_person_gives_up_by_leaving_invalid_settings(orders, edit, client, tmp_path, monkeypatch):
    monkeypatch.setattr(Terminal, "is_for_a_person", True)

    done = edit("queue", orders, replacing("attempts_max:", "attempts_max: many"))

    assert (done.code, done.err) == (1, "millstream: nothing was stored\n")
    assert left_texts(tmp_path) == []


def test_person_declines_difference(orders, edit, client, tmp_path, monkeypatch):
    monkeypatch.setattr(Terminal, "is_for_a_person", True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)

    done = edit("queue", orders, replacing("attempts_max:", "attempts_max: 3"))

    assert done.code == 1
    assert len(left_texts(tmp_path)) == 1
    assert client.get(f"/v1/queues/{orders}").json()["attempts_max"] == 10


def test_failing_editor_stores_nothing(orders, edit, tmp_path, monkeypatch):
    failed = edit("queue", orders, f"{replacing('attempts_max:', 'attempts_max: 3')}\nexit 3")
    monkeypatch.setenv("VISUAL", "/nowhere/editor")
    missing = edit("queue", orders, "")

    assert (failed.code, missing.code) == (1, 1)
    assert "failed (3), so nothing was stored" in failed.err
    assert "cannot run the editor '/nowhere/editor'" in missing.err
    assert left_texts(tmp_path) == []


def test_every_kind_is_edited(orders, edit, client):
    millstream("stream", "create", f"s-{orders}")
    millstream("group", "create", f"g-{orders}", f"s-{orders}")
    url = "http://127.0.0.1:1/hooks"
    millstream("webhook", "create", f"w-{orders}", f"queue:{orders}", url, "--header", "a=b")

    changes = {
        ("stream", f"s-{orders}"): ("retention_seconds:", "retention_seconds: 60"),
        ("group", f"g-{orders}"): ("session_timeout_seconds:", "session_timeout_seconds: 20"),
        ("webhook", f"w-{orders}"): ("rate:", "rate: 5"),
    }
    for (noun, name), change in changes.items():
        assert edit(noun, name, replacing(*change)).code == 0

    hook = client.get(f"/v1/webhooks/w-{orders}").json()
    assert (hook["rate"], hook["header_names"]) == (5, ["a"])
    assert client.get(f"/v1/streams/s-{orders}").json()["retention_seconds"] == 60


def test_missing_object_is_not_found(edit):
    assert edit("queue", "nowhere", "").code == 3
