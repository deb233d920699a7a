"""Selection of the service: option, environment, profile, or this machine."""

import pytest

from api.cli.config.profiles import config_path, find_target, is_on_this_machine
from api.cli.errors import CliError, ExitCode

PROFILES = """
profile = "local"

[profiles.local]
url = "http://127.0.0.1:9000"

[profiles.staging]
url = "https://staging.example.com"
api_key = "secret"
"""


@pytest.fixture
def home(tmp_path):
    """An environment whose configuration has two profiles."""
    path = config_path({"XDG_CONFIG_HOME": str(tmp_path)})
    path.parent.mkdir()
    path.write_text(PROFILES)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_target_defaults_to_this_machine(tmp_path):
    target = find_target({"HOME": str(tmp_path)})

    assert (target.url.value, target.url.origin) == ("http://127.0.0.1:8080", "default")
    assert target.api_key.value == ""


def test_option_overrides_environment_and_profile(home):
    request = {**home, "MILLSTREAM_URL": "http://variable:1"}

    assert find_target(request, url="http://option:1").url.value == "http://option:1"
    assert find_target(request).url.value == "http://variable:1"
    assert find_target(home).url.value == "http://127.0.0.1:9000"
    assert find_target({**home, "MILLSTREAM_PROFILE": "staging"}).url.value.startswith("https://")


def test_profile_of_option_overrides_environment(home):
    """A command for --profile staging went to the service that a variable named."""
    request = {**home, "MILLSTREAM_URL": "http://variable:1", "MILLSTREAM_API_KEY": "other"}

    target = find_target(request, profile="staging")

    assert target.url.value == "https://staging.example.com"
    assert target.api_key.value == "secret"


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, {"url": "http://option:1", "profile": "staging"}),
        ({"MILLSTREAM_PROFILE": "staging"}, {"url": "http://option:1"}),
        ({"MILLSTREAM_PROFILE": "staging", "MILLSTREAM_URL": "http://variable:1"}, {}),
    ],
)
def test_key_of_profile_is_sent_to_its_own_url_only(home, environment, options):
    """The key of a profile went to whatever service --url named."""
    assert find_target({**home, **environment}, **options).api_key.value == ""


def test_key_of_profile_is_used_when_option_has_its_url(home):
    target = find_target(home, url="https://staging.example.com", profile="staging")

    assert target.api_key.value == "secret"


def test_configuration_path_follows_home_and_xdg():
    assert str(config_path({"HOME": "/h"})) == "/h/.config/millstream/config.toml"
    assert str(config_path({"HOME": "/h", "XDG_CONFIG_HOME": "/x"})) == "/x/millstream/config.toml"


def test_unknown_profile_is_reported_with_suggestion(home):
    with pytest.raises(
        CliError, match=r"unknown profile 'stagin' .* did you mean 'staging'"
    ) as raised:
        find_target(home, profile="stagin")

    assert raised.value.code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("profil = 'a'", "unknown key 'profil': did you mean 'profile'"),
        ("[profiles.a]\nulr = 'x'", "unknown key 'ulr' in profile 'a': did you mean 'url'"),
        ("[profiles.a]\nurl = 1", "'url' of profile 'a' must be text"),
        ("profiles = 1", "'profiles' must be tables"),
        ("[profiles]\na = 1", "profile 'a' must be a table"),
        ("profile = 1", "'profile' must be a profile's name"),
        ("=", "cannot read"),
    ],
)
def test_error_in_configuration_file_is_reported(home, text, fault):
    config_path(home).write_text(text)

    with pytest.raises(CliError, match=fault):
        find_target(home)


def test_url_must_be_http(home):
    with pytest.raises(CliError, match=r"'localhost:8080' .option --url. is not a URL"):
        find_target(home, url="localhost:8080")


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://localhost:8080", True),
        ("http://[::1]:8080", True),
        ("https://mill.example.com", False),
        ("http://10.0.0.1:8080", False),
    ],
)
def test_loopback_address_is_on_this_machine(url, is_local):
    assert is_on_this_machine(url) is is_local
