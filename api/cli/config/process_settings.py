"""The settings of a command, and how a process of the deployment is told its own: through the environment."""

import json
import os
import tomllib
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr, ValidationError

from api.cli.errors import CliError, ExitCode
from api.config.settings import Settings, read_settings
from api.config.sources import with_origins

METRICS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
STORES = ("redis_url", "database_url")  # also known by names without our prefix


def settings_said(**options: Any) -> Settings:
    """The settings in force, with the options that were given. Raises CliError for one that cannot be."""
    try:
        return read_settings(**options)
    except ValidationError as error:
        raise CliError(wrong_values(error)[0], ExitCode.USAGE) from None
    except tomllib.TOMLDecodeError as error:
        raise CliError(f"millstream.toml cannot be read: {error}", ExitCode.USAGE) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f".env or millstream.toml cannot be read: {error}", ExitCode.USAGE) from None


def wrong_values(error: ValidationError) -> list[str]:
    """A sentence for each setting that cannot be."""
    sentences = []
    for fault in error.errors():
        where = ".".join(map(str, fault["loc"])).lower().removeprefix("millstream_")
        said = fault["msg"].removeprefix("Value error, ")
        sentences.append(f"setting {where}: {said}")
    return sentences


def with_stores(settings: Settings) -> Settings:
    """Return the settings, which must name both stores. Raises CliError."""
    try:
        settings.storage()
    except ValueError as error:
        raise CliError(str(error), ExitCode.USAGE) from None
    return settings


def child_environment(settings: Settings, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our own environment with `settings` written over it, and `extra` over that."""
    environment = dict(os.environ)
    for name, value in settings:
        if value is None:
            continue
        environment[f"MILLSTREAM_{name.upper()}"] = _word(value)
        if name in STORES:
            environment[name.upper()] = _word(value)
    return with_origins(settings, environment) | dict(extra or {})


def _word(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return str(value)


def environment() -> Mapping[str, str]:
    """What the command line reads of its environment: where the service is, and where profiles are."""
    return os.environ
