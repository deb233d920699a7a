"""`millstream mirror` against a service: every verb, as text and as JSON."""

from pathlib import Path

import pytest

from tests.cli_commands import millstream

pytestmark = pytest.mark.usefixtures("at_the_service")

KEY = "ms_8fKQ2rGq"
URL = "https://eu.example.com"


@pytest.fixture
def mirror(name: str, tmp_path: Path) -> str:
    """The name of a new mirror."""
    key_file = tmp_path / "key"
    key_file.write_text(f"{KEY}\n")
    made = millstream(
        *("mirror", "create", name, URL, "--stream", "eu.*", "--key-file", str(key_file))
    )
    assert made.code == 0, made.err
    return name


def test_mirror_is_shown_listed_changed_and_deleted(mirror):
    shown = millstream("mirror", "show", mirror, "-o", "json").json
    listed = millstream("mirror", "ls", "--prefix", mirror).out
    changed = millstream(
        *(
            "mirror",
            "apply",
            mirror,
            URL,
            "--stream",
            "us.*",
            "--follow-definitions",
            "--no-groups",
        ),
        *("-o", "json"),
    ).json
    refused = millstream("mirror", "rm", mirror)
    removed = millstream("mirror", "rm", mirror, "--yes")

    assert (shown["from"], shown["streams"]) == ({"url": URL}, ["eu.*"])
    assert KEY not in str(shown)
    assert URL in listed
    assert {change["pointer"] for change in changed["changes"]} == {
        "/streams",
        "/groups",
        "/follow_definitions",
    }
    assert (refused.code, removed.code) == (2, 0)
    assert millstream("mirror", "show", mirror).code == 3


def test_mirror_is_paused_resumed_and_promoted(mirror):
    paused = millstream("mirror", "pause", mirror)
    resumed = millstream("mirror", "resume", mirror, "-o", "json").json
    lag = millstream("mirror", "lag", mirror, "-o", "json")
    groups = millstream("mirror", "groups", mirror, "-o", "json")
    refused = millstream("mirror", "promote", mirror)
    promoted = millstream("mirror", "promote", mirror, "--yes", "-o", "json").json

    assert (paused.code, resumed["paused"]) == (0, False)
    assert (lag.code, lag.json) == (0, [])
    assert (groups.code, groups.json) == (0, [])
    assert "0 records behind" in refused.err
    assert promoted["promoted_at"] is not None


def test_mirror_is_exported_without_its_key_and_applied(mirror, tmp_path, client):
    exported = millstream("export", "mirrors", "--prefix", mirror)
    file = tmp_path / "mirror.yaml"
    file.write_text(exported.out)
    same = millstream("diff", "-f", str(file))
    file.write_text(exported.out.replace("groups: true", "groups: false"))
    changed = millstream("apply", "-f", str(file))

    assert KEY not in exported.out
    assert "kind: mirror" in exported.out
    assert (same.code, same.out) == (0, "")
    assert "/groups: true -> false" in changed.out
    assert "/from/key" not in changed.out
    assert client.get(f"/v1/mirrors/{mirror}").json()["groups"] is False
