"""Selection of the service: options, the environment, a profile, or this machine.

`~/.config/millstream/config.toml`, below XDG_CONFIG_HOME where that is set:

    profile = "local"                  # the default profile

    [profiles.local]
    url = "http://127.0.0.1:8080"

    [profiles.staging]
    url = "https://millstream.example.com"
    api_key = "…"
    ca_file = "/etc/ssl/ours.pem"
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.cli.errors import CliError, ExitCode

URL = "http://127.0.0.1:8080"
DEFAULT_ORIGIN = "default"
KEYS = frozenset({"profile", "profiles"})
PROFILE_KEYS = frozenset({"url", "api_key", "ca_file"})
PROFILE_NAME = re.compile(r"[A-Za-z0-9_.-]+")
LOOPBACK = ("127.", "localhost", "::1")


@dataclass(frozen=True)
class CliOverride:
    """A value, and its source."""

    value: str
    origin: str


@dataclass(frozen=True)
class ServiceTarget:
    """The selected service, and the credentials for it."""

    url: CliOverride
    api_key: CliOverride
    ca_file: CliOverride


def is_on_this_machine(url: str) -> bool:
    """Return whether a URL names a loopback address."""
    from urllib.parse import urlsplit

    return (urlsplit(url).hostname or "").startswith(LOOPBACK)


def selected_profile(environment: Mapping[str, str]) -> str | None:
    """Return the name of the profile that is used without options, if any."""
    return environment.get("MILLSTREAM_PROFILE") or read_config(config_path(environment)).get(
        "profile"
    )


def parse_profile_name(text: str) -> str:
    """Return the name of a profile. Raises ValueError."""
    if not PROFILE_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not a name: use letters, digits, dots, '_' and '-'")
    return text


def config_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the file of profiles, which may not exist."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~"), ".config"))
    return Path(base).expanduser() / "millstream" / "config.toml"


FIELDS = {  # of a target: variable and default
    "url": ("MILLSTREAM_URL", URL),
    "api_key": ("MILLSTREAM_API_KEY", ""),
    "ca_file": ("MILLSTREAM_CA_FILE", ""),
}


def find_target(
    environment: Mapping[str, str],
    *,
    url: str | None = None,
    api_key: str | None = None,
    ca_file: str | None = None,
    profile: str | None = None,
) -> ServiceTarget:
    """Return the selected service.

    In this order: options of values, the profile of an option, the environment, another profile. A profile's key is only
    sent to its own URL. Raises CliError for a profile that does not exist, and for an invalid file.
    """
    path = config_path(environment)
    name, values = _profile(path, profile or environment.get("MILLSTREAM_PROFILE"))
    options = {"url": url, "api_key": api_key, "ca_file": ca_file}
    of_options = {
        field: CliOverride(value, f"option --{field.replace('_', '-')}")
        for field, value in options.items()
        if value is not None
    }
    of_environment = {
        field: CliOverride(environment[variable], f"environment {variable}")
        for field, (variable, _) in FIELDS.items()
        if environment.get(variable)
    }
    of_profile = {
        field: CliOverride(value, f"profile {name} in {path}") for field, value in values.items()
    }
    defaults = {field: CliOverride(value, DEFAULT_ORIGIN) for field, (_, value) in FIELDS.items()}
    selected = of_environment | of_profile if profile else of_profile | of_environment
    chosen = defaults | selected | of_options
    if "url" in values and chosen["url"].value != values["url"]:
        chosen = defaults | of_environment | of_options
    _check_url(chosen["url"])
    return ServiceTarget(chosen["url"], chosen["api_key"], chosen["ca_file"])


def _check_url(url: CliOverride) -> None:
    if not url.value.startswith(("http://", "https://")):
        raise CliError(f"{url.value!r} ({url.origin}) is not a URL: use {URL}", ExitCode.USAGE)


def _profile(path: Path, name: str | None) -> tuple[str, dict[str, str]]:
    """Return the profile of that name; without a name the file's default, or none."""
    config = read_config(path)
    name = name or config.get("profile")
    if name is None:
        return "", {}
    profiles = config.get("profiles", {})
    if name not in profiles:
        raise CliError(
            f"unknown profile {name!r} in {path}{did_you_mean(name, profiles)}", ExitCode.USAGE
        )
    return name, profiles[name]


def read_config(path: Path) -> dict[str, Any]:
    """Return the file's tables; empty if there is no file.

    Raises CliError for invalid content.
    """
    import tomllib

    try:
        config = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CliError(f"cannot read {path}: {error}", ExitCode.USAGE) from None
    if faults := faults_of(config):
        raise CliError(f"{path}: {faults[0]}", ExitCode.USAGE)
    return config


def faults_of(config: Mapping[str, Any]) -> list[str]:
    """Return the faults of a file of profiles."""
    faults = [f"unknown key {key!r}{did_you_mean(key, KEYS)}" for key in config if key not in KEYS]
    if not isinstance(config.get("profile", ""), str):
        faults.append("'profile' must be a profile's name")
    profiles = config.get("profiles", {})
    if not isinstance(profiles, dict):
        return [*faults, "'profiles' must be tables, as in [profiles.local]"]
    for name, values in profiles.items():
        faults += _faults_of_profile(name, values)
    return faults


def _faults_of_profile(name: str, values: Any) -> list[str]:
    if not isinstance(values, dict):
        return [f"profile {name!r} must be a table, as in [profiles.{name}]"]
    unknown = [
        f"unknown key {key!r} in profile {name!r}{did_you_mean(key, PROFILE_KEYS)}"
        for key in values
        if key not in PROFILE_KEYS
    ]
    wrong = [
        f"{key!r} of profile {name!r} must be text"
        for key in PROFILE_KEYS & values.keys()
        if not isinstance(values[key], str)
    ]
    return unknown + wrong


def did_you_mean(name: str, candidates: Any) -> str:
    """Return the end of a sentence about an unknown name: a suggestion, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(candidates), n=1)
    return f": did you mean {near[0]!r}?" if near else ""
