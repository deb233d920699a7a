"""Changes of the file of profiles."""

import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from api.cli.config.profile_file import put_profile, remove_profile, select_profile
from api.cli.errors import CliError, ExitCode

WRITTEN_BY_HAND = """\
# of ours
profile = "a" # the default

[profiles.a]
# behind the proxy
url = "http://a:1"

[profiles."b.c"]
url = "http://b:1"
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "config.toml"


def content(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def test_first_profile_is_selected(path):
    put_profile(path, "a", {"url": "http://a:1", "api_key": ""}, selects=False)
    put_profile(path, "b", {"url": "http://b:1", "api_key": 'k"\\'}, selects=False)

    assert content(path) == {
        "profile": "a",
        "profiles": {
            "a": {"url": "http://a:1"},
            "b": {"url": "http://b:1", "api_key": 'k"\\'},
        },
    }


def test_file_is_readable_by_its_owner_alone(path):
    put_profile(path, "a", {"url": "http://a:1"}, selects=True)
    path.chmod(0o644)
    put_profile(path, "a", {"url": "http://a:2"}, selects=True)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["config.toml"]


def test_comments_are_kept_when_profiles_change(path):
    path.parent.mkdir()
    path.write_text(WRITTEN_BY_HAND)

    put_profile(path, "d", {"url": "http://d:1"}, selects=False)
    select_profile(path, "b.c")
    remove_profile(path, "d")

    assert path.read_text().rstrip() == WRITTEN_BY_HAND.replace('"a" #', '"b.c" #').rstrip()


def test_selection_stands_before_tables(path):
    path.parent.mkdir()
    path.write_text('# mine\n[profiles.a]\nurl = "http://a:1"\n')

    select_profile(path, "a")

    assert content(path) == {"profile": "a", "profiles": {"a": {"url": "http://a:1"}}}
    assert "# mine" in path.read_text()


def test_removal_of_selected_profile_selects_none(path):
    put_profile(path, "a", {"url": "http://a:1"}, selects=True)
    put_profile(path, "b", {"url": "http://b:1"}, selects=False)

    remove_profile(path, "a")

    assert content(path) == {"profiles": {"b": {"url": "http://b:1"}}}


@pytest.mark.parametrize("change", [select_profile, remove_profile])
def test_unknown_profile_is_not_changed(path, change):
    put_profile(path, "staging", {"url": "http://a:1"}, selects=True)
    before = path.read_text()

    with pytest.raises(CliError, match="did you mean 'staging'") as raised:
        change(path, "stagin")

    assert raised.value.code is ExitCode.NOT_FOUND
    assert path.read_text() == before


def test_invalid_file_is_not_overwritten(path):
    path.parent.mkdir()
    path.write_text("[profiles.a]\nulr = 1\n")

    with pytest.raises(CliError, match="unknown key 'ulr'"):
        put_profile(path, "b", {"url": "http://b:1"}, selects=True)

    assert "ulr" in path.read_text()


def test_symbolic_link_to_file_is_kept(path, tmp_path):
    target = tmp_path / "dotfiles.toml"
    target.write_text("")
    path.parent.mkdir()
    path.symlink_to(target)

    put_profile(path, "a", {"url": "http://a:1"}, selects=True)

    assert path.is_symlink()
    assert content(target)["profile"] == "a"


def test_file_of_authorities_is_stored_with_its_whole_path(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    put_profile(path, "a", {"url": "https://a:1", "ca_file": "ca.pem"}, selects=True)

    assert content(path)["profiles"]["a"]["ca_file"] == str(tmp_path / "ca.pem")
