"""`millstream profile`, `login` and `ui` against services with and without keys."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api.cli.shell.terminal import Terminal
from millstream_client.errors import Unauthenticated
from tests.cli_commands import millstream

NOWHERE = "http://127.0.0.1:9"
KEY = "msk_good"


@pytest.fixture(autouse=True)
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of profiles, which does not exist, in an environment that names no service."""
    for variable in ("MILLSTREAM_URL", "MILLSTREAM_API_KEY", "MILLSTREAM_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "millstream" / "config.toml"


@pytest.fixture
def profiles(file) -> Callable[[], dict[str, Any]]:
    return lambda: tomllib.loads(file.read_text()) if file.exists() else {}


@pytest.fixture
def service_with_keys(monkeypatch) -> None:
    """A service that accepts one key."""

    def whoami(cli: Any, target: Any, key: str) -> dict[str, Any]:
        if key != KEY:
            raise Unauthenticated(401, {"code": "unauthenticated", "detail": "Invalid key."})
        return {"name": "ann"}

    monkeypatch.setattr("api.cli.commands.login._whoami", whoami)


@pytest.fixture
def typed(monkeypatch) -> Iterator[list[tuple[str, str]]]:
    """Answers to prompts by their beginning; afterwards all were given."""
    answers: list[tuple[str, str]] = []

    def prompt(text: str, default: str = "", **_: Any) -> str:
        expected, answer = answers.pop(0)
        assert text.startswith(expected)
        return answer or default

    monkeypatch.setattr("typer.prompt", prompt)
    monkeypatch.setattr(Terminal, "is_for_a_person", True)
    yield answers
    assert answers == []


# ── Log in ──


@pytest.mark.usefixtures("service_with_keys")
def test_login_stores_checked_key_of_standard_input(profiles):
    done = millstream("login", "--url", NOWHERE, "--with-key", stdin=f"{KEY}\n".encode())

    assert done.out.startswith(f"Logged in to {NOWHERE} as ann")
    assert KEY not in done.out + done.err
    assert profiles() == {
        "profile": "default",
        "profiles": {"default": {"url": NOWHERE, "api_key": KEY}},
    }


@pytest.mark.usefixtures("service_with_keys")
@pytest.mark.parametrize("words", [("--api-key", "msk_no"), ("--with-key",)])
def test_login_stores_nothing_when_key_is_invalid(words, profiles):
    done = millstream("login", "staging", "--url", NOWHERE, *words, stdin=b"msk_no")

    assert (done.code, done.out) == (1, "")
    assert profiles() == {}


@pytest.mark.usefixtures("service_with_keys")
def test_login_warns_of_key_in_the_clear():
    done = millstream("login", "--url", "http://10.0.0.1:1", "--api-key", KEY)

    assert "not encrypted" in done.err


def test_login_stores_nothing_when_service_is_unreachable(profiles):
    done = millstream("login", "--url", NOWHERE)

    assert done.code == 4
    assert profiles() == {}


def test_login_prompts_for_address_and_needs_no_key_in_open_mode(service_url, typed, profiles):
    typed.append(("Address", service_url))

    done = millstream("login", "local")

    assert done.code == 0, done.err
    assert profiles()["profiles"] == {"local": {"url": service_url}}


@pytest.mark.usefixtures("service_with_keys")
def test_login_prompts_for_key_when_service_requires_one(typed, profiles):
    typed += [("Address", ""), ("API key", KEY)]

    done = millstream("login")

    assert done.out.startswith("Logged in to http://127.0.0.1:8080 as ann")
    assert profiles()["profiles"]["default"]["api_key"] == KEY


def test_login_without_terminal_requires_url():
    done = millstream("login")

    assert (done.code, done.err) == (2, "millstream: specify --url\n")


# ── Profiles ──


def test_profiles_are_added_selected_listed_and_deleted(service_url, profiles):
    assert millstream("profile", "add", "a", "--url", NOWHERE, "--api-key", "msk_a").code == 0
    assert millstream("profile", "add", "b", "--url", service_url).code == 0
    assert millstream("queue", "ls").code == 4
    assert millstream("queue", "ls", "--profile", "b").code == 0
    assert millstream("profile", "use", "b").code == 0
    assert millstream("queue", "ls").code == 0

    listed = millstream("profile", "ls", "-o", "json").json
    rejected = millstream("profile", "rm", "a")
    deleted = millstream("profile", "rm", "a", "--yes")

    assert [(row["name"], row["api_key"], row["selected"]) for row in listed] == [
        ("a", "**********", False),
        ("b", None, True),
    ]
    assert (rejected.code, deleted.code) == (2, 0)
    assert profiles() == {"profile": "b", "profiles": {"b": {"url": service_url}}}


@pytest.mark.parametrize(
    ("words", "code", "fault"),
    [
        (("add", "a", "--url", "http://other:1"), 1, "already exists; use --replace"),
        (("add", "new"), 2, "specify --url"),
        (("add", "new", "--url", "other:1"), 2, "is not a URL"),
        (("add", "a b", "--url", NOWHERE), 2, "'a b' is not a name"),
        (("use", "c"), 3, "unknown profile 'c'"),
        (("rm", "c", "--yes"), 3, "unknown profile 'c'"),
    ],
)
def test_profile_is_not_changed_by_mistake(words, code, fault, profiles):
    millstream("profile", "add", "a", "--url", NOWHERE)
    before = profiles()

    done = millstream("profile", *words)

    assert done.code == code
    assert fault in done.err
    assert profiles() == before


def test_missing_selected_profile_can_be_replaced(file):
    """Each command failed while the selected profile did not exist, also the one that selects."""
    file.parent.mkdir()
    file.write_text(f'profile = "gone"\n[profiles.a]\nurl = "{NOWHERE}"\n')

    assert millstream("queue", "ls").code == 2
    assert millstream("profile", "use", "a").code == 0
    assert millstream("queue", "ls").code == 4


# ── Dashboard ──


def test_dashboard_is_opened_in_browser(monkeypatch):
    opened: list[str] = []

    def open_page(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", open_page)

    shown = millstream("ui", "queues/orders", "--url", NOWHERE)
    quiet = millstream("ui", "-q", "--url", NOWHERE)
    row = millstream("ui", "-o", "json", "--url", f"{NOWHERE}/").json

    assert opened == [f"{NOWHERE}/ui/queues/orders"]
    assert shown.out == f"{NOWHERE}/ui/queues/orders\n"
    assert quiet.out == f"{NOWHERE}/ui\n"
    assert row == {"url": f"{NOWHERE}/ui"}


def test_address_of_dashboard_is_printed_without_browser(monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda url: False)

    done = millstream("ui", "--url", NOWHERE)

    assert done.out == f"{NOWHERE}/ui\n"
    assert "No browser" in done.err
