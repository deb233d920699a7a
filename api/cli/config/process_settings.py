"""Settings of a command, and their transfer to child processes by the environment."""

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from api.cli.errors import CliError, ExitCode

if TYPE_CHECKING:
    from pydantic import ValidationError

    from api.config.settings import Settings

METRICS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
STORES = ("redis_url", "database_url")  # also read from variables without our prefix


def settings_from_cli(**options: Any) -> "Settings":
    """Read the settings in force, with the given options. Raises CliError for an invalid one."""
    import tomllib

    from pydantic import ValidationError

    from api.config.settings import read_settings

    try:
        return read_settings(**options)
    except ValidationError as error:
        raise CliError(wrong_values(error)[0], ExitCode.USAGE) from None
    except tomllib.TOMLDecodeError as error:
        raise CliError(f"cannot read millstream.toml: {error}", ExitCode.USAGE) from None
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"cannot read .env or millstream.toml: {error}", ExitCode.USAGE) from None


def wrong_values(error: "ValidationError") -> list[str]:
    """Return a sentence for each invalid setting."""
    sentences = []
    for fault in error.errors():
        where = ".".join(map(str, fault["loc"])).lower().removeprefix("millstream_")
        message = fault["msg"].removeprefix("Value error, ")
        sentences.append(f"setting {where}: {message}")
    return sentences


def with_stores(settings: "Settings") -> "Settings":
    """Return the settings if they name both stores. Raises CliError."""
    try:
        settings.storage()
    except ValueError as error:
        raise CliError(str(error), ExitCode.USAGE) from None
    return settings


def child_environment(
    settings: "Settings", extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return our environment with `settings` written over it, and `extra` over that."""
    from api.config.sources import with_origins

    environment = dict(os.environ)
    for name, value in settings:
        if value is None:
            continue
        environment[f"MILLSTREAM_{name.upper()}"] = _encode_value(value)
        if name in STORES:
            environment[name.upper()] = _encode_value(value)
    return with_origins(settings, environment) | dict(extra or {})


def _encode_value(value: object) -> str:
    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return str(value)


def environment() -> Mapping[str, str]:
    """Return the environment variables of the command line: service address and profiles."""
    return os.environ
