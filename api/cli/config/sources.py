"""Settings, and who said them: the environment, `.env`, `millstream.toml`, or nobody."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from api.cli.config.process_settings import environment, settings_said, wrong_values
from api.cli.config.profiles import Said, config_path, did_you_mean, faults_of
from api.config.settings import ORIGINS, Settings, read_settings
from api.config.sources import DOTENV, PREFIX, TOML, names_of, origin_of, sources_now, spelled

OF_COMMANDS = frozenset(
    {"MILLSTREAM_URL", "MILLSTREAM_API_KEY", "MILLSTREAM_CA_FILE", "MILLSTREAM_PROFILE", ORIGINS}
)
# What Kubernetes tells every pod beside a Service named millstream, or millstream-valkey: not said by anybody.
_SERVICE_LINK = re.compile(
    r"MILLSTREAM_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def settings_told() -> dict[str, Said]:
    """Every setting of a service started here, by name. Secrets are hidden. Raises CliError."""
    settings, sources = settings_said(), sources_now()
    return {name: Said(spelled(value), origin_of(name, sources)) for name, value in settings}


# ── What is wrong ──


def faults(folder: Path) -> list[str]:
    """A sentence for each thing that is wrong with the settings in force in a folder."""
    return [*unknown(folder), *_profiles(), *_values()]


def unknown(folder: Path) -> list[str]:
    """A sentence for each setting of a service that a folder, or the environment, names and nobody knows."""
    return [
        *_unknown_variables(environment(), "environment"),
        *_unknown_in_dotenv(folder / DOTENV),
        *_unknown_keys(folder / TOML),
    ]


def _unknown_variables(variables: Mapping[str, Any], origin: str) -> list[str]:
    """Only what begins as ours does is meant for us."""
    known = {name.upper() for field in Settings.model_fields for name in names_of(field)}
    known = {name for name in known if name.startswith(PREFIX)} | OF_COMMANDS
    return [
        f"{origin}: unknown setting {name}{did_you_mean(name.upper(), known)}"
        for name in variables
        if name.upper().startswith(PREFIX)
        and name.upper() not in known
        and not _SERVICE_LINK.fullmatch(name)
    ]


def _unknown_in_dotenv(path: Path) -> list[str]:
    from dotenv import dotenv_values

    try:
        told = dotenv_values(path) if path.is_file() else {}
    except (OSError, UnicodeDecodeError) as error:
        return [f"{path.name} cannot be read: {error}"]
    return _unknown_variables(told, path.name)


def _unknown_keys(path: Path) -> list[str]:
    try:
        told = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return [f"{path.name} cannot be read: {error}"]
    known = set(Settings.model_fields)
    return [
        f"{path.name}: unknown setting {key}{did_you_mean(key, known)}"
        for key in told
        if key not in known
    ]


def _profiles() -> list[str]:
    path = config_path(environment())
    try:
        return [f"{path}: {fault}" for fault in faults_of(tomllib.loads(path.read_text()))]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return [f"{path} cannot be read: {error}"]


def _values() -> list[str]:
    try:
        read_settings()
    except ValidationError as error:
        return wrong_values(error)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):  # that is told elsewhere
        pass
    return []
