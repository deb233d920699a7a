"""Selection of the service: an option, else the environment, a profile, or this machine.

`~/.config/millstream/config.toml`, below XDG_CONFIG_HOME where that is set:

    profile = "local"                  # the default profile

    [profiles.local]
    url = "http://127.0.0.1:8080"

    [profiles.staging]
    url = "https://millstream.example.com"
    api_key = "…"
    ca_file = "/etc/ssl/ours.pem"
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.cli.errors import CliError, ExitCode

URL = "http://127.0.0.1:8080"
DEFAULT_ORIGIN = "default"
KEYS = frozenset({"profile", "profiles"})
PROFILE_KEYS = frozenset({"url", "api_key", "ca_file"})


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


def config_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the file of profiles, which may not exist."""
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "~"), ".config"))
    return Path(base).expanduser() / "millstream" / "config.toml"


def find_target(
    environment: Mapping[str, str],
    *,
    url: str | None = None,
    api_key: str | None = None,
    ca_file: str | None = None,
    profile: str | None = None,
) -> ServiceTarget:
    """Return the selected service.

    Raises CliError for a profile that does not exist, and for an invalid file.
    """
    path = config_path(environment)
    selected = _profile(path, profile or environment.get("MILLSTREAM_PROFILE"))
    name, values = selected
    chosen = {
        key: _first(
            CliOverride(option, f"option {flag}") if option is not None else None,
            CliOverride(environment[variable], f"environment {variable}")
            if environment.get(variable)
            else None,
            CliOverride(values[key], f"profile {name} in {path}") if key in values else None,
            CliOverride(fallback, DEFAULT_ORIGIN),
        )
        for key, option, flag, variable, fallback in (
            ("url", url, "--url", "MILLSTREAM_URL", URL),
            ("api_key", api_key, "--api-key", "MILLSTREAM_API_KEY", ""),
            ("ca_file", ca_file, "--ca-file", "MILLSTREAM_CA_FILE", ""),
        )
    }
    _check_url(chosen["url"])
    return ServiceTarget(chosen["url"], chosen["api_key"], chosen["ca_file"])


def _first(*candidates: CliOverride | None) -> CliOverride:
    return next(candidate for candidate in candidates if candidate is not None)


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
