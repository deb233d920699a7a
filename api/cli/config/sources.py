"""Settings and their sources: the environment, `.env`, `millstream.toml`, or the default."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from api.cli.config.process_settings import environment, settings_from_cli, wrong_values
from api.cli.config.profiles import CliOverride, config_path, did_you_mean, faults_of
from api.config.settings import ORIGINS, Settings, read_settings
from api.config.sources import (
    DOTENV,
    PREFIX,
    TOML,
    names_of,
    setting_as_text,
    setting_source,
    sources_now,
)

OF_COMMANDS = frozenset(
    {"MILLSTREAM_URL", "MILLSTREAM_API_KEY", "MILLSTREAM_CA_FILE", "MILLSTREAM_PROFILE", ORIGINS}
)
# Variables that Kubernetes sets in every pod next to a Service named millstream, or millstream-valkey: not set by a user.
_SERVICE_LINK = re.compile(
    r"MILLSTREAM_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def settings_with_origins() -> dict[str, CliOverride]:
    """Return every setting of a service started here, by name. Secrets are hidden.

    Raises CliError.
    """
    settings, sources = settings_from_cli(), sources_now()
    return {
        name: CliOverride(setting_as_text(value), setting_source(name, sources))
        for name, value in settings
    }


# ── Faults ──


def faults(folder: Path) -> list[str]:
    """Return a sentence for each fault of the settings in force in a folder."""
    return [*unknown(folder), *_profiles(), *_values()]


def unknown(folder: Path) -> list[str]:
    """Return a sentence for each unknown setting in a folder or the environment."""
    return [
        *_unknown_variables(environment(), "environment"),
        *_unknown_in_dotenv(folder / DOTENV),
        *_unknown_keys(folder / TOML),
    ]


def _unknown_variables(variables: Mapping[str, Any], origin: str) -> list[str]:
    """Return a sentence for each unknown variable with our prefix; others are not ours."""
    valid = {name.upper() for field in Settings.model_fields for name in names_of(field)}
    valid = {name for name in valid if name.startswith(PREFIX)} | OF_COMMANDS
    return [
        f"{origin}: unknown setting {name}{did_you_mean(name.upper(), valid)}"
        for name in variables
        if name.upper().startswith(PREFIX)
        and name.upper() not in valid
        and not _SERVICE_LINK.fullmatch(name)
    ]


def _unknown_in_dotenv(path: Path) -> list[str]:
    from dotenv import dotenv_values

    try:
        values = dotenv_values(path) if path.is_file() else {}
    except (OSError, UnicodeDecodeError) as error:
        return [f"cannot read {path.name}: {error}"]
    return _unknown_variables(values, path.name)


def _unknown_keys(path: Path) -> list[str]:
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return [f"cannot read {path.name}: {error}"]
    valid = set(Settings.model_fields)
    return [
        f"{path.name}: unknown setting {key}{did_you_mean(key, valid)}"
        for key in values
        if key not in valid
    ]


def _profiles() -> list[str]:
    path = config_path(environment())
    try:
        return [f"{path}: {fault}" for fault in faults_of(tomllib.loads(path.read_text()))]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return [f"cannot read {path}: {error}"]


def _values() -> list[str]:
    try:
        read_settings()
    except ValidationError as error:
        return wrong_values(error)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):  # reported elsewhere
        pass
    return []
