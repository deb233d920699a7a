"""`millstream key` against a service: secrets are shown once only."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli_commands import millstream
from tests.documentation import blocks

pytestmark = pytest.mark.usefixtures("at_the_service")

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "keys.md"


def test_secret_is_shown_once_and_rights_always(name):
    made = millstream(
        *("key", "create", name, "--role", "viewer", "--expires", "90d"),
        *("--allow", "queue:send,queue:list orders-*", "--deny", "queue:purge"),
    )

    word = made.out.strip()
    [listed] = millstream("key", "ls", "--name", name, "-o", "json").json
    shown = millstream("key", "show", listed["id"], "-o", "json").json
    told = millstream("key", "show", listed["id"]).out

    assert made.code == 0
    assert word.split("_")[1] == listed["id"]
    assert "not shown again" in made.err
    assert shown["roles"] == ["viewer"]
    assert shown["expires_at"] > shown["created_at"]
    assert shown["grants"] == [
        {
            "effect": "allow",
            "actions": ["queue:send", "queue:list"],
            "resources": ["orders-*"],
        },
        {"effect": "deny", "actions": ["queue:purge"], "resources": ["*"]},
    ]
    assert word.split("_")[2] not in told


def test_quiet_output_is_secret_alone(name):
    alone = millstream("key", "create", name, "--role", "producer", "-q")
    whole = millstream("key", "create", name, "--role", "producer", "-o", "json").json

    assert alone.err == ""
    assert len(alone.out.split()) == 1
    assert whole["secret"].startswith(f"msk_{whole['id']}_")


def test_key_pair_is_shown_as_aws_configuration(name):
    lines = millstream("key", "pair", name, "--role", "producer").out.splitlines()

    assert lines[0] == f"[{name}]"
    assert lines[1].startswith("aws_access_key_id = MSAK")
    assert lines[2].startswith("aws_secret_access_key = ")


def test_key_is_rotated_and_revoked(name):
    first = millstream("key", "create", name, "--role", "viewer", "-o", "json").json

    second = millstream("key", "rotate", first["id"], "--overlap", "1h", "-o", "json").json
    third = millstream("key", "rotate", second["id"])
    asked = millstream("key", "revoke", first["id"])
    done = millstream("key", "revoke", first["id"], "--yes")

    assert (second["family"], second["name"]) == (first["id"], name)
    assert third.code == 1
    assert "Revoke one of them" in third.err
    assert asked.code == 2
    assert done.out == f"Revoked key {first['id']} of {name}.\n"
    [old] = [
        one
        for one in millstream("key", "ls", "--name", name, "-o", "json").json
        if one["revoked_at"]
    ]
    assert old["id"] == first["id"]


def test_invalid_rights_are_reported_as_service_does(name):
    for words in (("--allow", "queue:sned"), ()):
        refused = millstream("key", "create", name, *words)

        assert refused.code == 2
        assert refused.out == ""


def test_whoami_shows_permissions():
    mine = millstream("key", "whoami", "-o", "json").json

    assert (mine["name"], mine["all_namespaces"]) == ("local-administrator", True)
    assert mine["grants"] == [{"effect": "allow", "actions": ["*"], "resources": ["*"]}]


def test_guide_page_runs(name):
    """Run every command of docs/how-to/keys.md, in order, except the one on the database."""
    typed = [block.text for block in blocks(PAGE) if block.language == "sh" and not block.why]
    lines = [line for text in typed for line in text.splitlines() if "--local" not in line]
    known = ""
    for line in lines:
        own = re.sub(r"\b(shop|billing)\b", rf"\1-{name}", line).replace("$ID", known)
        asked = re.fullmatch(r"ID=\$\((.*)\)", own)

        _, *words = shlex.split(asked[1] if asked else own)
        ran = millstream(*words)

        assert ran.code == 0, (line, ran.err)
        known = ran.out.strip() if asked else known

    assert len(lines) == 7
